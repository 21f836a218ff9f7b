//! What kube-apiserver must know of the webhooks, kept in order as long as they are answered: their
//! certificate is renewed, and whoever vouches for it is told; and taken back where nobody answers.
//! The first registration waits until the webhooks answer at the address that kube-apiserver will ask.
//! Webhooks that are registered already are corrected at once: while they are wrong, writes are rejected.
//! Looking again is the only way by which anything is put right, so it does not matter what went
//! wrong, or for whom.

use super::configuration::{self, Place};
use super::keys::Keys;
use super::reach;
use super::release::Release;
use super::secret::Keeper;
use super::withdrawal::withdraw;
use anyhow::{Context, Result};
use kube::Client;
use muster_api::guard::Accounts;
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the certificate and the configurations are looked at.
const LOOK: Duration = Duration::from_secs(30);
/// How soon again when that failed, or where files may change.
const AGAIN: Duration = Duration::from_secs(2);
/// The webhooks are asked this often before a warning says that they do not answer, and between two warnings.
const QUESTIONS: usize = 15;
/// How often what is not to be there is looked for: replicas from before put it back until they are
/// gone.
const FAREWELLS: usize = 10;

/// What is answered with, and who vouches for it.
pub(super) enum Certificate {
    /// Somebody else's; those who vouch for it, if they are named.
    Given { authority: Option<PathBuf> },
    /// Our own, renewed in time.
    Own {
        keeper: Box<Keeper>,
        keys: Keys,
        serving: watch::Sender<Arc<ServerConfig>>,
    },
}

type Tls = watch::Receiver<Arc<ServerConfig>>;

/// A certificate of our own, as soon as the cluster keeps one.
pub(super) async fn own(keeper: Box<Keeper>) -> (Certificate, Tls) {
    loop {
        let kept = async {
            let keys = keeper.settle(None).await?;
            let config = keys.tls()?;
            Ok::<_, anyhow::Error>((keys, config))
        };
        match kept.await {
            Ok((keys, config)) => {
                let (serving, tls) = watch::channel(config);
                let certificate = Certificate::Own {
                    keeper,
                    keys,
                    serving,
                };
                return (certificate, tls);
            }
            Err(error) => tracing::warn!(
                error = format!("{error:#}"),
                "waiting for the certificate of the webhooks"
            ),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Certificate {
    /// How long until the next look: a file changes without a word, and what it is for at once.
    fn pause(&self) -> Duration {
        match self {
            Certificate::Given { .. } => AGAIN,
            Certificate::Own { .. } => LOOK,
        }
    }

    /// Looks after the certificate; returns the authorities that kube-apiserver is to trust.
    async fn look(&mut self) -> Result<Option<String>> {
        match self {
            Certificate::Given { authority: None } => Ok(None),
            Certificate::Given {
                authority: Some(file),
            } => {
                let read = tokio::fs::read_to_string(&file).await;
                let read = read.with_context(|| format!("reading {}", file.display()))?;
                Ok(Some(read))
            }
            Certificate::Own {
                keeper,
                keys,
                serving,
            } => {
                let now = keeper.settle(Some(keys)).await?;
                if now != *keys {
                    serving.send_replace(now.tls()?);
                    tracing::info!("answering webhooks with a new certificate");
                    *keys = now;
                }
                Ok(Some(keys.bundle()))
            }
        }
    }
}

/// What a look at the configurations led to.
enum Looked {
    /// Nothing: they were written a moment ago.
    Recent,
    Written,
    /// Nothing: Helm may be deleting the release.
    Left,
}

/// Waits until the webhooks are registered or answer at their address; false if they are to stop before.
async fn answering(
    client: &Client,
    place: &Place,
    certificate: &mut Certificate,
    stop: &CancellationToken,
) -> bool {
    for number in 1.. {
        let asked = async {
            let found = configuration::read(client).await;
            let found = found.context("reading the webhook configurations")?;
            if configuration::are_registered(&found) {
                return Ok(());
            }
            let bundle = certificate.look().await?;
            reach::ask(place, bundle.as_deref()).await
        };
        let asked = tokio::select! {
            asked = tokio::time::timeout(LOOK, asked) => asked,
            () = stop.cancelled() => return false,
        };
        let Err(error) = asked.context("kube-apiserver takes too long").flatten() else {
            return true;
        };
        let error = format!("{error:#}");
        match number % QUESTIONS {
            0 => tracing::warn!(error, "the webhooks are not registered yet; retrying"),
            _ => tracing::debug!(error, "the webhooks are not registered yet; retrying"),
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = stop.cancelled() => return false,
        }
    }
    false
}

/// Tells kube-apiserver where to ask, again and again: a certificate changes, and what somebody
/// deleted or edited is put right.
pub(super) async fn register(
    client: &Client,
    place: &Place,
    accounts: &Accounts,
    mut certificate: Certificate,
    stop: &CancellationToken,
) {
    if !answering(client, place, &mut certificate, stop).await {
        return;
    }
    let mut told: Option<(Option<String>, Instant)> = None;
    let mut release = Release::default();
    loop {
        let look = async {
            let bundle = certificate.look().await?;
            let known = told
                .as_ref()
                .is_some_and(|(known, at)| *known == bundle && at.elapsed() < LOOK);
            if known {
                return Ok((bundle, Looked::Recent));
            }
            let found = configuration::read(client).await;
            if !release.lets_write(&found.context("reading the webhook configurations")?) {
                return Ok((bundle, Looked::Left));
            }
            configuration::apply(client, place, accounts, bundle.as_deref()).await?;
            Ok::<_, anyhow::Error>((bundle, Looked::Written))
        };
        let looked = tokio::select! {
            looked = tokio::time::timeout(LOOK, look) => looked,
            () = stop.cancelled() => return,
        };
        let looked = looked.context("kube-apiserver takes too long").flatten();
        let pause = match looked {
            Ok((_, Looked::Recent)) => certificate.pause(),
            Ok((bundle, Looked::Left)) => {
                told = Some((bundle, Instant::now()));
                certificate.pause()
            }
            Ok((bundle, Looked::Written)) => {
                let before = told.replace((bundle.clone(), Instant::now()));
                if before.is_none_or(|(before, _)| before != bundle) {
                    tracing::info!("registered the webhooks");
                }
                certificate.pause()
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "registering the webhooks");
                AGAIN
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Has kube-apiserver ask nobody any more. Whoever may not, or finds nothing, goes on without.
pub(super) async fn unregister(client: &Client, installation: &str) {
    for _ in 0..FAREWELLS {
        let withdrawn = withdraw(client, installation);
        match tokio::time::timeout(LOOK, withdrawn).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "taking back the webhooks; while they are there, what nobody answers is refused");
                // Rights do not come by asking again.
                if matches!(&error, kube::Error::Api(refused) if refused.code == 403) {
                    return;
                }
            }
            Err(_) => tracing::warn!("taking back the webhooks: kube-apiserver takes too long"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
