//! A cluster that is looked at: what it serves, its namespaces, its policies and its objects. It is
//! only ever read, page by page.

use super::talk::Talk;
use anyhow::{Context, Result};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Error};
use muster_audit::served;
use muster_policy::Served;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How long a server may take to let somebody in, and to go on with an answer.
const CONNECT: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
/// So many objects come at once.
const PAGE: u32 = 250;

/// A cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: kube::api::ListMeta,
    #[serde(default)]
    items: Vec<Value>,
}

impl Cluster {
    /// The cluster that a kubeconfig names; if none is given, the one that kubectl would ask.
    pub(super) async fn open(file: Option<&Path>, context: Option<&str>) -> Result<Cluster> {
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let mut config = match file {
            Some(file) => {
                let kubeconfig = Kubeconfig::read_from(file)
                    .with_context(|| format!("reading {}", file.display()))?;
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .with_context(|| format!("using {}", file.display()))?
            }
            None => kube::Config::from_kubeconfig(&options).await.context(
                "finding a cluster; name manifests with `-f FILE`, or a cluster with `--kubeconfig FILE`",
            )?,
        };
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(PATIENCE);
        let client = Client::try_from(config).context("preparing to talk to the cluster")?;
        Ok(Cluster { client })
    }

    /// What it serves. What it cannot tell is told.
    pub(super) async fn served(&self, talk: &Talk) -> Result<Vec<Served>> {
        let discovered = served::discover(&self.client)
            .await
            .context("asking the cluster what it serves")?;
        for group in &discovered.doubtful {
            talk.trouble(&format!(
                "the cluster cannot say at the moment what it serves of {group}"
            ));
        }
        Ok(discovered.served)
    }

    /// Hands over all objects of a resource in one of its versions, of one namespace or of all, a page
    /// at a time. They name their type, as objects of lists do not.
    pub(super) async fn each(
        &self,
        served: &Served,
        version: &str,
        namespace: Option<&str>,
        mut see: impl AsyncFnMut(Value) -> bool,
    ) -> Result<()> {
        let api_version = match served.group.as_str() {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let root = if served.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        let within = match namespace.filter(|_| served.namespaced) {
            Some(namespace) => format!("namespaces/{namespace}/"),
            None => String::new(),
        };
        let path = format!("{root}/{api_version}/{within}{}", served.resource);
        let what = match served.group.as_str() {
            "" => served.resource.clone(),
            group => format!("{}.{group}", served.resource),
        };
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let request = kube::core::Request::new(&path).list(&parameters);
            let request = request.with_context(|| format!("asking for {what}"))?;
            let page: Page = match self.client.request(request).await {
                Ok(page) => page,
                // The list has grown too old; the server offers to go on with what is there now.
                Err(Error::Api(status)) if status.code == 410 => {
                    let offer = status.metadata.as_ref();
                    let offer = offer.and_then(|offer| offer.continue_.clone());
                    match offer.filter(|offer| !offer.is_empty()) {
                        Some(offer) => {
                            parameters = parameters.continue_token(&offer);
                            continue;
                        }
                        None => return Err(explained(Error::Api(status), &what)),
                    }
                }
                Err(error) => return Err(explained(error, &what)),
            };
            for mut item in page.items {
                if let Some(object) = item.as_object_mut() {
                    object.insert("apiVersion".into(), api_version.as_str().into());
                    object.insert("kind".into(), served.kind.as_str().into());
                }
                if !see(item).await {
                    return Ok(());
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    /// All objects of a resource, of one namespace or of all.
    pub(super) async fn all(
        &self,
        served: &Served,
        version: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let each = self.each(served, version, namespace, async |object| {
            all.push(object);
            true
        });
        each.await?;
        Ok(all)
    }
}

/// What to do about it is said where it is known.
fn explained(error: Error, what: &str) -> anyhow::Error {
    let hint = match &error {
        Error::Api(status) if status.code == 403 => {
            "; ask for the right to list them, or name one namespace with `-n NAMESPACE`"
        }
        Error::HyperError(_) | Error::Service(_) => "; is the cluster running?",
        _ => "",
    };
    let attempt = format!("reading {what}{hint}");
    anyhow::Error::new(error).context(attempt)
}
