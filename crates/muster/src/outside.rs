//! A cluster that is looked at from outside: `muster up --kubeconfig FILE`. It is only ever read: a
//! request that could change something there is refused here, before it is sent. What is found stays at
//! home, where nobody knows the owners of it, so nothing is collected because one is missing.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use muster_api::{config_audit, reports, scanner, storage};
use muster_kind::Kind;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

/// How long the cluster may take to let us in.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a watch may be silent before its connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(150);
/// How often a cluster that is away is asked again.
const AGAIN: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(crate) struct Outside {
    /// Look at the workloads of the cluster that this kubeconfig names, instead of those kept here.
    /// Nothing is written there. See docs/outside.md.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of that kubeconfig, if not its current one.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
}

/// A cluster that is looked at.
pub(crate) struct Cluster {
    pub(crate) client: kube::Client,
    url: String,
}

impl Outside {
    /// The cluster, if one is named; `own` is the kubeconfig of this very server.
    pub(crate) async fn open(&self, own: &Path) -> Result<Option<Cluster>> {
        let Some(file) = &self.kubeconfig else {
            return Ok(None);
        };
        let using = || format!("using --kubeconfig {}", file.display());
        if let (Ok(file), Ok(own)) = (file.canonicalize(), own.canonicalize())
            && file == own
        {
            bail!(
                "{}: that is the kubeconfig of this server itself; name one of the cluster to look at",
                using()
            );
        }
        let kubeconfig = Kubeconfig::read_from(file).with_context(using)?;
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.with_context(using)?;
        config.connect_timeout = Some(PATIENCE);
        config.read_timeout = Some(SILENCE);
        let url = config.cluster_url.to_string();
        let builder = ClientBuilder::try_from(config).with_context(using)?;
        let client = builder
            .with_layer(&tower::layer::layer_fn(ReadOnly))
            .build();
        Ok(Some(Cluster { client, url }))
    }
}

impl Cluster {
    /// Asks for its version, and for what has to be seen there.
    async fn ask(&self) -> kube::Result<String> {
        let version = self.client.apiserver_version().await?;
        for kind in ["Namespace", "Pod"] {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
            api.list_metadata(&ListParams::default().limit(1)).await?;
        }
        Ok(version.git_version)
    }

    /// Says when the cluster answers, and until then that it does not, or not to us.
    pub(crate) async fn announce(self, stop: CancellationToken) {
        let mut said = String::new();
        loop {
            let answer = tokio::select! {
                () = stop.cancelled() => return,
                answer = self.ask() => answer,
            };
            match answer {
                Ok(version) => {
                    eprintln!("Looking at the workloads of {} ({version})", self.url);
                    return;
                }
                Err(error) => {
                    let error = crate::told(&error.into());
                    if error != said {
                        eprintln!("Waiting for the cluster at {}: {error}", self.url);
                        said = error;
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }
}

/// Kinds whose owners are in the cluster that is looked at.
pub(crate) fn disown(kinds: &mut [Kind]) {
    let kinds = kinds.iter_mut();
    let about_others = kinds.filter(|kind| match kind.group.as_str() {
        storage::GROUP => kind.kind == "WorkloadScanReport",
        group => [reports::GROUP, reports::OPEN_GROUP, config_audit::GROUP].contains(&group),
    });
    for kind in about_others {
        kind.owners_elsewhere = true;
    }
}

/// Turns the scan of workloads on at home, unless somebody has said how it should be.
pub(crate) async fn configure(home: &kube::Client) -> Result<()> {
    const KIND: &str = "WorkloadScanConfiguration";
    let kind = GroupVersionKind::gvk(scanner::GROUP, scanner::VERSION, KIND);
    let api: Api<DynamicObject> = Api::all_with(home.clone(), &ApiResource::from_gvk(&kind));
    let name = scanner::configuration::NAME;
    let configuration = serde_json::from_value(json!({
        "apiVersion": kind.api_version(), "kind": KIND, "metadata": {"name": name}, "spec": {},
    }));
    let configuration = configuration.context("writing a WorkloadScanConfiguration")?;
    match api.create(&PostParams::default(), &configuration).await {
        Ok(_) => {
            eprintln!(
                "The images of all workloads are scanned; `kubectl edit workloadscanconfiguration {name}` changes that."
            );
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).context("creating the WorkloadScanConfiguration"),
    }
}

/// Sends what reads, and nothing else.
#[derive(Clone, Debug)]
struct ReadOnly<S>(S);

impl<S, B> Service<Request<B>> for ReadOnly<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.method() != Method::GET {
            let (method, path) = (request.method(), request.uri().path());
            let refused = format!("not sending {method} {path}: the cluster is only looked at");
            return Box::pin(async move { Err(refused.into()) });
        }
        let answer = self.0.call(request);
        Box::pin(answer.map(|answer| answer.map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tower::ServiceExt;

    #[tokio::test]
    async fn only_what_reads_is_sent() {
        let sent = tower::service_fn(async |request: Request<()>| {
            Ok::<_, Infallible>(request.method().clone())
        });
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let request = Request::builder()
                .method(method)
                .uri("/api/v1/pods")
                .body(());
            let answer = ReadOnly(sent).oneshot(request.unwrap()).await;
            assert_eq!(answer.is_ok(), method == "GET", "{method}");
            if let Err(refused) = answer {
                assert!(refused.to_string().contains("only looked at"), "{refused}");
            }
        }
    }
}
