//! What every serving role shares: a runtime, an address, a version, history, and an end.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use muster_apiserver::Upkeep;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Whether something is done.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// How much of the past is kept.
#[derive(Args)]
pub(crate) struct History {
    /// For how many seconds a watch can resume, or a list fetch its next page.
    #[arg(long, env = "MUSTER_HISTORY_SECONDS", value_name = "SECONDS", default_value_t = Upkeep::default().keep_seconds)]
    history_seconds: u64,
    /// How many changes of every resource are remembered, however old they are.
    #[arg(long, env = "MUSTER_HISTORY_EVENTS", value_name = "EVENTS", default_value_t = Upkeep::default().keep_events)]
    history_events: u64,
    /// How often older history is forgotten.
    #[arg(long, env = "MUSTER_UPKEEP_SECONDS", value_name = "SECONDS", default_value_t = Upkeep::default().interval.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    upkeep_seconds: u64,
}

impl History {
    pub(crate) fn upkeep(&self) -> Upkeep {
        Upkeep {
            interval: Duration::from_secs(self.upkeep_seconds),
            keep_seconds: self.history_seconds,
            keep_events: self.history_events,
            ..Upkeep::default()
        }
    }
}

/// Runs a role to its end.
pub(crate) fn run<T>(role: impl Future<Output = Result<T>>) -> Result<T> {
    // The one TLS provider of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?
        .block_on(role)
}

/// Listens where the flag says.
pub(crate) async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "{address} is in use by another process; stop it, or choose another address with `{flag} 127.0.0.1:PORT` (port 0 takes a free one)"
        ),
        Err(error) => Err(error).with_context(|| format!("listening on {address}")),
    }
}

/// What `/version` tells.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": format!("v1.36.0+muster-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Listens for Ctrl-C and SIGTERM from now on; what it returns waits for one of them. Whoever is told
/// where a server is may tell it to stop at once, so this comes first.
pub(crate) fn end() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn told_to_stop() -> Result<()> {
    end()?.await;
    Ok(())
}
