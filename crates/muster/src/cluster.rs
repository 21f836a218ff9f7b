//! The cluster that a role works in, as flags, and a client of its kube-apiserver.

use anyhow::{Context, Result};
use clap::Args;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::PathBuf;
use std::time::Duration;

/// How long kube-apiserver may take over an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may be silent while somebody waits for a page.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a watch may be silent before its connection is taken for dead. kube-apiserver ends
/// watches after five to ten minutes by itself, and sends bookmarks every minute.
const SILENCE: Duration = Duration::from_secs(150);

/// A cluster.
#[derive(Args)]
pub(crate) struct Cluster {
    /// How to reach kube-apiserver; inside a cluster it is known.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Cluster {
    pub(crate) async fn client(&self) -> Result<kube::Client> {
        let config = self.config().await?;
        kube::Client::try_from(config).context("preparing to talk to kube-apiserver")
    }

    /// A client that says nothing of who it is, for those who say it themselves.
    pub(crate) async fn stranger(&self) -> Result<kube::Client> {
        let mut config = self.config().await?;
        config.auth_info = kube::config::AuthInfo::default();
        config.read_timeout = Some(ANSWER);
        kube::Client::try_from(config).context("preparing to talk to kube-apiserver for others")
    }

    /// A client of another server that believes the same credentials.
    pub(crate) async fn client_of(
        &self,
        server: &str,
        authorities: Vec<u8>,
    ) -> Result<kube::Client> {
        let mut config = self.config().await?;
        let wrong = || format!("preparing to talk to {server}");
        config.cluster_url = server.parse().with_context(wrong)?;
        let roots = CertificateDer::pem_slice_iter(&authorities);
        let roots = roots.map(|root| root.map(|root| root.to_vec()));
        config.root_cert = Some(roots.collect::<Result<_, _>>().with_context(wrong)?);
        kube::Client::try_from(config).with_context(wrong)
    }

    async fn config(&self) -> Result<kube::Config> {
        let mut config = match &self.kubeconfig {
            Some(file) => {
                let kubeconfig = kube::config::Kubeconfig::read_from(file)
                    .with_context(|| format!("reading {}", file.display()))?;
                let options = kube::config::KubeConfigOptions::default();
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .with_context(|| format!("using {}", file.display()))?
            }
            None => kube::Config::incluster().context(
                "finding kube-apiserver; outside a cluster, name it with `--kubeconfig FILE`",
            )?,
        };
        config.connect_timeout = Some(PATIENCE);
        config.read_timeout = Some(SILENCE);
        Ok(config)
    }
}
