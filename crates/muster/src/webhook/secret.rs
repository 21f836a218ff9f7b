//! The Secret in which a cluster keeps the keys of its webhooks, shared by all operators. It is
//! written by compare-and-swap: of several who make keys at the same time one is heard, and the
//! others take what it made.

use super::keys::Keys;
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use std::collections::BTreeSet;

const NAME: &str = "muster-webhook";
/// How often a write is tried that others come in between of.
const ATTEMPTS: usize = 5;

/// Looks after the Secret.
pub(super) struct Keeper {
    secrets: Api<Secret>,
    names: BTreeSet<String>,
}

impl Keeper {
    /// For a server of these names.
    pub(super) fn new(client: &Client, installation: &str, names: BTreeSet<String>) -> Self {
        Keeper {
            secrets: Api::namespaced(client.clone(), installation),
            names,
        }
    }

    /// The keys that all agree on, renewed if it is time. A Secret that is gone is made of what was
    /// `known`, so that nobody who still answers with it is misunderstood.
    pub(super) async fn settle(&self, known: Option<&Keys>) -> Result<Keys> {
        for _ in 0..ATTEMPTS {
            let secret = self.secrets.get_opt(NAME).await;
            let secret = secret.with_context(|| format!("reading the Secret {NAME}"))?;
            let kept = secret.as_ref().and_then(read);
            let now = u64::try_from(Timestamp::now().as_second())?;
            let wanted = Keys::renewed(kept.as_ref().or(known), &self.names, now)?;
            if kept.as_ref() == Some(&wanted) {
                return Ok(wanted);
            }
            match self.write(secret, &wanted).await {
                Ok(()) => return Ok(wanted),
                // Another was faster.
                Err(kube::Error::Api(refused)) if refused.code == 409 => {}
                other => other.with_context(|| format!("writing the Secret {NAME}"))?,
            }
        }
        bail!("writing the Secret {NAME}: others write it all the time")
    }

    async fn write(&self, known: Option<Secret>, keys: &Keys) -> kube::Result<()> {
        let exists = known.is_some();
        let mut secret = known.unwrap_or_default();
        secret.metadata.name = Some(NAME.into());
        let data = keys.written().into_iter();
        secret.data = Some(data.map(|(key, bytes)| (key, ByteString(bytes))).collect());
        let parameters = PostParams {
            field_manager: Some(super::MANAGER.into()),
            ..PostParams::default()
        };
        match exists {
            true => self.secrets.replace(NAME, &parameters, &secret).await?,
            false => self.secrets.create(&parameters, &secret).await?,
        };
        Ok(())
    }
}

/// The keys of a Secret; none if they are of no use.
fn read(secret: &Secret) -> Option<Keys> {
    let data = secret.data.clone().unwrap_or_default();
    let data = data.into_iter().map(|(key, bytes)| (key, bytes.0));
    let read = Keys::read(&data.collect());
    read.inspect_err(|error| {
        let error = format!("{error:#}");
        tracing::warn!(error, "replacing the keys in the Secret {NAME}");
    })
    .ok()
}
