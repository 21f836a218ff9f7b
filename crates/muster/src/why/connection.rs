//! Which server is asked: the one that is named, else the one of `muster up` on this machine, else
//! what kubectl would ask.

use crate::inspect::places;
use crate::plugin::Called;
use anyhow::{Context, Result};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take to let somebody in, and to go on with an answer.
const CONNECT: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Args)]
pub(super) struct Choice {
    /// How to reach the server. If not given, KUBECONFIG is used, then the kubeconfig that `muster
    /// up` wrote into its data directory (not by kubectl's plugin), then what kubectl uses.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The data directory of `muster up`.
    #[arg(long, env = "MUSTER_DATA", default_value_os_t = places::data(), hide_default_value = true)]
    data: PathBuf,
}

/// A server, and the namespace that its context is about.
pub(super) struct Connection {
    pub(super) client: kube::Client,
    pub(super) namespace: String,
}

impl Choice {
    pub(super) async fn open(&self) -> Result<Connection> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let is_told = std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
        let here = self.data.join("kubeconfig");
        let file = match &self.kubeconfig {
            Some(file) => Some(file.clone()),
            None if !is_told && Called::now() == Called::Muster && here.is_file() => {
                eprintln!("asking the server of {}", here.display());
                Some(here)
            }
            None => None,
        };
        let mut config = match file {
            Some(file) => {
                let kubeconfig = Kubeconfig::read_from(&file)
                    .with_context(|| format!("reading {}", file.display()))?;
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .with_context(|| format!("using {}", file.display()))?
            }
            None => kube::Config::from_kubeconfig(&options).await.context(
                "finding a server; start one with `muster up`, or name one with `--kubeconfig FILE`",
            )?,
        };
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(PATIENCE);
        let namespace = config.default_namespace.clone();
        let client = kube::Client::try_from(config).context("preparing to talk to the server")?;
        Ok(Connection { client, namespace })
    }
}
