//! Webhooks that are turned off, and those that do not answer yet: kube-apiserver must not ask where nobody
//! answers.

use super::SOON;
use super::admission::{Cluster, registry};
use anyhow::{Context, Result};
use muster_testkit::balancer::Balancer;
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

/// Pods answer some seconds before a Service leads to them.
#[test]
fn webhooks_are_registered_once_kube_apiserver_can_ask_them() -> Result<()> {
    let cluster = Cluster::start()?;
    let (port, service) = (port::free()?, Balancer::start(Vec::new())?);
    let arguments = ["--log", "muster=debug"];
    let operator = cluster.operator(port, service.port(), &arguments, "early.log")?;
    wait::until("the operator to ask its own Service", SOON, || {
        let log = operator.log_tail();
        Ok(log
            .contains("the webhooks are not registered yet")
            .then_some(()))
    })
    .with_context(|| operator.log_tail())?;
    let wanted = registry("default", "wanted", json!({"uri": "x.io"})).to_string();
    cluster
        .kubectl
        .succeed_with(&["create", "-f", "-"], &wanted)?;
    service.add(port);
    cluster.wait_refusing().with_context(|| operator.log_tail())
}
