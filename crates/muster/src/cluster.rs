//! The cluster that a role works in, as flags, and a client of its kube-apiserver.

pub(crate) mod version;

use anyhow::{Context, Result, ensure};
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
        let config = self.config().await?;
        let config = redirect(config, server, &authorities);
        let client = config.and_then(|config| Ok(kube::Client::try_from(config)?));
        client.with_context(|| format!("preparing to talk to {server}"))
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

/// The same credentials for another server, which proves itself by these authorities and by nothing
/// that holds for kube-apiserver. Inside a cluster kube trusts `root_cert_file`, the ServiceAccount's
/// `ca.crt`, over `root_cert`.
fn redirect(mut config: kube::Config, server: &str, authorities: &[u8]) -> Result<kube::Config> {
    let roots = CertificateDer::pem_slice_iter(authorities);
    let roots: Vec<Vec<u8>> = roots
        .map(|root| root.map(|root| root.to_vec()))
        .collect::<Result<_, _>>()
        .context("reading the CA certificates")?;
    ensure!(!roots.is_empty(), "there is no CA certificate");
    config.cluster_url = server.parse()?;
    config.root_cert = Some(roots);
    config.root_cert_file = None;
    config.accept_invalid_certs = false;
    config.tls_server_name = None;
    Ok(config)
}

#[cfg(test)]
mod tests;
