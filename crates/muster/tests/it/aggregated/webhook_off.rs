//! Webhooks that are turned off: kube-apiserver must not go on asking where nobody answers.

use super::SOON;
use super::admission::{Cluster, registry};
use anyhow::{Context, Result};
use muster_testkit::{port, wait};
use serde_json::json;

#[test]
fn an_operator_without_webhooks_takes_back_those_from_before() -> Result<()> {
    let cluster = Cluster::start()?;
    let port = port::free()?;
    let mut operator = cluster.operator(port, port, &[], "on.log")?;
    cluster
        .wait_refusing()
        .with_context(|| operator.log_tail())?;
    operator.terminate(SOON)?;
    let wanted = registry("default", "wanted", json!({"uri": "x.io"})).to_string();
    let create = ["create", "-f", "-"];
    let refused = cluster.kubectl.fail(&create, &wanted)?;
    assert!(refused.contains("failed calling webhook"), "{refused}");

    let operator = cluster.start_operator(&["--webhook-listen", "off"], "off.log")?;
    wait::until("kube-apiserver to ask nobody", SOON, || {
        let outcome = cluster.kubectl.run(&create, &wanted)?;
        Ok(outcome.status.success().then_some(()))
    })
    .with_context(|| operator.log_tail())?;
    for kind in ["mutating", "validating"] {
        let kind = format!("{kind}webhookconfigurations");
        let left = cluster.kubectl.succeed(&["get", &kind, "-o", "name"])?;
        assert_eq!(left, "");
    }
    Ok(())
}
