//! Where NATS is, as flags.

use clap::Args;
use muster_queue::{Authentication, NatsOptions};
use std::path::PathBuf;

/// Some NATS servers.
#[derive(Args)]
pub(crate) struct Nats {
    /// A NATS server, such as nats://nats.muster.svc:4222; may be given several times, or with
    /// commas.
    #[arg(long, env = "MUSTER_NATS", value_name = "URL", value_delimiter = ',')]
    nats: Vec<String>,
    /// A credentials file for NATS.
    #[arg(long, env = "MUSTER_NATS_CREDENTIALS", value_name = "FILE")]
    nats_credentials: Option<PathBuf>,
    /// Certificate authorities of NATS beside the system's, in PEM; nothing then goes without TLS.
    #[arg(long, env = "MUSTER_NATS_CA", value_name = "FILE")]
    nats_ca: Option<PathBuf>,
}

impl Nats {
    /// How to reach them; nothing if there are none.
    pub(crate) fn options(&self) -> Option<NatsOptions> {
        let first = self.nats.first()?;
        Some(NatsOptions {
            servers: self.nats.clone(),
            authentication: match &self.nats_credentials {
                Some(file) => Authentication::CredentialsFile(file.clone()),
                None => Authentication::None,
            },
            require_tls: self.nats_ca.is_some(),
            authorities: self.nats_ca.clone(),
            ..NatsOptions::new(first)
        })
    }
}
