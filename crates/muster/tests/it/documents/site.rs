//! The cluster of the pages that install Muster in one: a real kube-apiserver with its controllers, and
//! nodes that run what Helm installed.

use super::desk::Desk;
use crate::chart::nodes::Nodes;
use anyhow::{Context, Result};
use muster_testkit::kubernetes::{Kubernetes, Options};

/// A cluster; it ends when dropped.
pub(super) struct Site {
    // The order is the order of dropping.
    nodes: Option<Nodes>,
    kubernetes: Kubernetes,
}

/// Gives a desk a cluster, to which its tools talk, and the charts to install from.
pub(super) fn build(desk: &mut Desk) -> Result<()> {
    let kubernetes = Kubernetes::start(&Options {
        controllers: true,
        ..Options::default()
    })?;
    let path = kubernetes.kubeconfig_path();
    desk.export(&format!("KUBECONFIG={}", path.display()))?;
    desk.site = Some(Site {
        nodes: None,
        kubernetes,
    });
    desk.lay_out("charts")
}

impl Site {
    /// Does what nodes do between the commands of a page.
    pub(super) fn before(&mut self, command: &str) -> Result<()> {
        if command.starts_with("kubectl wait --for=condition=Available apiservice") {
            let mut nodes = Nodes::new(&self.kubernetes)?;
            nodes.lead()?;
            nodes.store()?;
            nodes.decide()?;
            self.nodes = Some(nodes);
        }
        if command.starts_with("kubectl delete workloadscanconfiguration") {
            // Helm has put the Service back that leads to nobody here.
            self.nodes.as_ref().context("nodes")?.lead()?;
        }
        if command.starts_with("helm uninstall") {
            // Without their Deployments pods end.
            self.nodes = None;
        }
        Ok(())
    }
}
