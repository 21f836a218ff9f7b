//! The accounts of our own roles, as flags: who may write what a controller manages.

use clap::Args;
use muster_api::guard::Accounts;

#[derive(Args)]
pub(crate) struct OwnAccounts {
    /// The user who alone writes managed objects. If not given, the service account
    /// `muster-operator` of the installation namespace.
    #[arg(long, env = "MUSTER_CONTROLLER", value_name = "USER")]
    controller: Option<String>,
    /// The user who scans. If not given, the service account `muster-worker` of the installation
    /// namespace.
    #[arg(long, env = "MUSTER_WORKER", value_name = "USER")]
    worker: Option<String>,
}

impl OwnAccounts {
    /// The accounts of the installation in a namespace.
    pub(crate) fn within(&self, namespace: &str) -> Accounts {
        let own = Accounts::in_namespace(namespace);
        Accounts {
            controller: self.controller.clone().unwrap_or(own.controller),
            worker: self.worker.clone().unwrap_or(own.worker),
        }
    }
}
