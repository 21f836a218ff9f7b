//! The webhooks of `muster operator`: kube-apiserver asks here before it keeps an object of ours.
//! Every replica answers, whoever leads, and each keeps what kube-apiserver must know in order: the
//! certificate ([`secret`]) and where to ask ([`configuration`]), see [`registration`]. What is answered is decided in
//! `muster_operator::admission`.

mod configuration;
mod keys;
mod reach;
mod registration;
mod release;
mod reviewer;
mod secret;
mod withdrawal;

use crate::accounts::OwnAccounts;
use crate::role::bind;
use crate::tls;
use anyhow::{Context, Result, ensure};
use clap::Args;
use configuration::Place;
use http::Uri;
use kube::Client;
use muster_apiserver::listen;
use muster_operator::admission::{Admission, Gate};
use registration::{Certificate, own, register, unregister};
use reviewer::Reviewer;
use secret::Keeper;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The name under which our fields are owned.
const MANAGER: &str = "muster";
/// How long a replica that is told to stop still answers, so that nobody is sent to one that is
/// gone: what cannot be asked is refused.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct Webhook {
    /// The address at which kube-apiserver asks whether an object of ours may be written; `off`
    /// answers nobody and registers nothing, and deletes what was registered before.
    #[arg(
        long,
        env = "MUSTER_WEBHOOK_LISTEN",
        value_name = "ADDRESS",
        default_value = "[::]:9443"
    )]
    webhook_listen: Listen,
    /// The certificate to answer with, and those between it and its authority, in PEM. The file is
    /// read again when it changes. If not given, one is made and kept in the Secret
    /// `muster-webhook` of the installation namespace.
    #[arg(
        long,
        env = "MUSTER_WEBHOOK_CERTIFICATE",
        value_name = "FILE",
        requires = "webhook_key"
    )]
    webhook_certificate: Option<PathBuf>,
    /// The certificate's key, in PEM.
    #[arg(
        long,
        env = "MUSTER_WEBHOOK_KEY",
        value_name = "FILE",
        requires = "webhook_certificate"
    )]
    webhook_key: Option<PathBuf>,
    /// The authority of a given certificate, in PEM. If not given, kube-apiserver is told of none,
    /// and somebody else may tell it.
    #[arg(
        long,
        env = "MUSTER_WEBHOOK_AUTHORITY",
        value_name = "FILE",
        requires = "webhook_certificate"
    )]
    webhook_authority: Option<PathBuf>,
    /// The Service, in the installation namespace, through which kube-apiserver asks.
    #[arg(
        long,
        env = "MUSTER_WEBHOOK_SERVICE",
        value_name = "NAME",
        default_value = "muster-operator"
    )]
    webhook_service: String,
    /// Where kube-apiserver asks if not through a Service: https://HOST:PORT.
    #[arg(long, env = "MUSTER_WEBHOOK_URL", value_name = "URL")]
    webhook_url: Option<Uri>,
    #[command(flatten)]
    accounts: OwnAccounts,
}

/// Where to listen, if at all.
#[derive(Clone, Copy)]
enum Listen {
    Off,
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Listen::Off),
            text => text
                .parse()
                .map(Listen::At)
                .map_err(|_| "give an address such as 0.0.0.0:9443, or `off`".into()),
        }
    }
}

impl Webhook {
    /// Listens, and answers from a task of its own until `stop`; none if it is off, and then nobody is
    /// asked any more.
    pub(crate) async fn start(
        &self,
        client: &Client,
        installation: &str,
        stop: CancellationToken,
    ) -> Result<Option<JoinHandle<()>>> {
        let Listen::At(address) = self.webhook_listen else {
            let (client, installation) = (client.clone(), installation.to_owned());
            // Nobody waits for it, and it ends with the process.
            tokio::spawn(async move { unregister(&client, &installation).await });
            return Ok(None);
        };
        let place = self.place(installation)?;
        let given = match (&self.webhook_certificate, &self.webhook_key) {
            (Some(certificate), Some(key)) => {
                let files = tls::Files {
                    certificate: certificate.clone(),
                    key: key.clone(),
                };
                Some(tls::follow(files).await?.config)
            }
            _ => None,
        };
        let listener = bind("--webhook-listen", address).await?;
        let address = listener.local_addr().context("asking for the port")?;
        tracing::info!(%address, "listening for webhooks");
        let gate = Gate::new(client.clone(), installation);
        let accounts = self.accounts.within(installation);
        let reviewer = Arc::new(Reviewer::new(Admission::new(accounts.clone(), gate)));
        let keeper = Box::new(Keeper::new(client, installation, place.names()));
        let (client, authority) = (client.clone(), self.webhook_authority.clone());
        Ok(Some(tokio::spawn(async move {
            let opened = match given {
                Some(tls) => Some((Certificate::Given { authority }, tls)),
                None => tokio::select! {
                    () = stop.cancelled() => None,
                    own = own(keeper) => Some(own),
                },
            };
            let Some((certificate, tls)) = opened else {
                return;
            };
            let serving = listen::serve(reviewer, listener, tls, stop.clone());
            // Nobody is sent here before somebody answers.
            tokio::join!(
                serving,
                register(&client, &place, &accounts, certificate, &stop)
            );
        })))
    }

    fn place(&self, installation: &str) -> Result<Place> {
        let Some(url) = &self.webhook_url else {
            return Ok(Place::Service {
                namespace: installation.to_owned(),
                name: self.webhook_service.clone(),
            });
        };
        let plain = url.path() == "/" && url.query().is_none();
        ensure!(
            url.scheme_str() == Some("https") && url.host().is_some() && plain,
            "--webhook-url {url} is not of the form https://HOST:PORT"
        );
        Ok(Place::Url(url.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        webhook: Webhook,
    }

    #[test]
    fn flags_that_make_no_sense_are_refused() {
        for (flags, fine) in [
            (&[][..], true),
            (&["--webhook-listen=off"], true),
            (&["--webhook-listen=127.0.0.1:1"], true),
            (&["--webhook-listen=9443"], false),
            (&["--webhook-url=https://127.0.0.1:1"], true),
            (&["--webhook-url=http://127.0.0.1:1"], false),
            (&["--webhook-url=https://127.0.0.1:1/path"], false),
            (&["--webhook-certificate=a", "--webhook-key=b"], true),
            (&["--webhook-certificate=a"], false),
            (&["--webhook-key=b"], false),
            (&["--webhook-authority=c"], false),
        ] {
            let all = ["muster"].iter().chain(flags);
            let parsed = Flags::try_parse_from(all).map_err(anyhow::Error::from);
            let place = parsed.and_then(|flags| flags.webhook.place("muster"));
            assert_eq!(place.is_ok(), fine, "{flags:?}");
        }
    }
}
