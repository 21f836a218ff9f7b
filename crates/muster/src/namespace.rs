//! Whether a namespace exists: without it an answer about the namespace would be an all-clear for a
//! mistyped name.

use anyhow::{Context, Result, bail};
use kube::api::GetParams;
use kube::{Client, Error};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What is needed of a namespace.
#[derive(Clone, Debug, Deserialize)]
struct Namespace {
    #[serde(rename = "metadata")]
    _metadata: IgnoredAny,
}

/// Fails if a namespace does not exist.
pub(crate) async fn exists(client: &Client, name: &str) -> Result<()> {
    let request = kube::core::Request::new("/api/v1/namespaces");
    let request = request.get(name, &GetParams::default());
    let request = request.with_context(|| format!("asking for the namespace {name}"))?;
    match client.request::<Namespace>(request).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code == 404 => {
            bail!("namespace {name:?} not found; `kubectl get namespaces` lists the namespaces")
        }
        // Users may read what is in a namespace and not the namespace itself.
        Err(Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => {
            let hint = match &error {
                Error::HyperError(_) | Error::Service(_) => "; is the server running?",
                _ => "",
            };
            let attempt = format!("cannot read the namespace {name}{hint}");
            Err(anyhow::Error::new(error).context(attempt))
        }
    }
}
