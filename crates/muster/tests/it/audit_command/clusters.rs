//! A cluster is looked at, with its own policies or with others; `muster up` is one.

use super::{Desk, good_names, lines, pod, policy};
use anyhow::{Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::{Value, json};

fn stage() -> Result<(Muster, String, Desk)> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    for namespace in ["shop", "bank"] {
        kubectl.succeed(&["create", "namespace", namespace])?;
    }
    kubectl.succeed(&["label", "namespace", "bank", "stage=live"])?;
    for (namespace, name) in [("shop", "bad"), ("shop", "good"), ("bank", "bad")] {
        kubectl.succeed_with(&["create", "-n", namespace, "-f", "-"], &pod(name))?;
    }
    let mut own = policy("own", "false", "no", json!({"/metadata/namespace": "bank"}));
    own["kind"] = "AdmissionPolicy".into();
    let live = json!({"/metadata/name": "live",
        "/spec/namespaceSelector": {"matchLabels": {"stage": "live"}}});
    for policy in [good_names(json!({})), good_names(live), own.to_string()] {
        kubectl.succeed_with(&["create", "-f", "-"], &policy)?;
    }
    let kubeconfig = muster.kubeconfig_path().to_string_lossy().into_owned();
    Ok((muster, kubeconfig, Desk::with(&[])?))
}

#[test]
fn a_cluster_is_judged_by_its_own_policies_and_only_read() -> Result<()> {
    let (muster, kubeconfig, desk) = stage()?;
    let reports = desk.reports(&["--kubeconfig", &kubeconfig])?;
    assert_eq!(
        lines(&reports),
        [
            "bank/Pod/bad clusterwide-live fail a bad name",
            "bank/Pod/bad clusterwide-names fail a bad name",
            "bank/Pod/bad namespaced-bank-own fail no",
            "shop/Pod/bad clusterwide-names fail a bad name",
            "shop/Pod/good clusterwide-names pass -",
        ]
    );
    // A report is about the object that is there.
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let object: Value = serde_json::from_str(
        &kubectl.succeed(&["get", "pod", "good", "-n", "shop", "-o", "json"])?,
    )?;
    let report = reports
        .iter()
        .find(|one| one["scope"]["name"] == "good")
        .unwrap();
    assert_eq!(report["metadata"]["name"], object["metadata"]["uid"]);
    assert_eq!(
        report["scope"]["resourceVersion"],
        object["metadata"]["resourceVersion"]
    );
    assert_eq!(
        kubectl.succeed(&["get", "policyreports", "-A", "-o", "name"])?,
        ""
    );
    let shop = desk.reports(&["--kubeconfig", &kubeconfig, "-n", "shop"])?;
    assert_eq!(lines(&shop).len(), 2, "{shop:?}");
    let nope = desk.run(&["--kubeconfig", &kubeconfig, "-n", "nope"])?;
    assert_eq!(nope.code, Some(1), "{nope:?}");
    ensure!(
        nope.talk.contains("namespace \"nope\" not found"),
        "{nope:?}"
    );
    Ok(())
}

#[test]
fn other_policies_judge_a_cluster_and_its_policies_judge_manifests() -> Result<()> {
    let (muster, kubeconfig, desk) = stage()?;
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["namespaces", "pods/*"],
        "operations": ["*"]}]);
    let other = policy(
        "other",
        "object.metadata.name != 'shop'",
        "no shops",
        json!({"/spec/rules": rules}),
    );
    desk.write("other.yaml", other.to_string())?;
    let reports = desk.reports(&["--kubeconfig", &kubeconfig, "-p", "other.yaml"])?;
    let lines_ = lines(&reports);
    ensure!(
        lines_.contains(&"-/Namespace/shop clusterwide-other fail no shops".into()),
        "{lines_:?}"
    );
    ensure!(
        lines_.contains(&"bank/Pod/bad clusterwide-other pass -".into()),
        "{lines_:?}"
    );
    // As the cluster would judge what is about to be applied there.
    desk.write("pod.yaml", pod("bad"))?;
    let reports = desk.reports(&["--kubeconfig", &kubeconfig, "-f", "pod.yaml", "-n", "bank"])?;
    assert_eq!(
        lines(&reports),
        [
            "bank/Pod/bad clusterwide-live fail a bad name",
            "bank/Pod/bad clusterwide-names fail a bad name",
            "bank/Pod/bad namespaced-bank-own fail no",
        ]
    );
    drop(muster);
    let away = desk.run(&["--kubeconfig", &kubeconfig])?;
    ensure!(away.code == Some(1) && away.result.is_empty(), "{away:?}");
    Ok(())
}

#[test]
fn many_pages_are_read_and_everything_is_judged_once() -> Result<()> {
    let (muster, kubeconfig, desk) = stage()?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let items: Vec<Value> = (0..600)
        .map(|number| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("c{number}"), "namespace": "shop"}})
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    kubectl.succeed_with(&["create", "-f", "-"], &list.to_string())?;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"],
        "operations": ["*"]}]);
    let all = policy("all", "true", "", json!({"/spec/rules": rules}));
    desk.write("all.yaml", all.to_string())?;
    let reports = desk.reports(&["--kubeconfig", &kubeconfig, "-p", "all.yaml", "-n", "shop"])?;
    let names: std::collections::BTreeSet<_> = reports
        .iter()
        .map(|one| one["metadata"]["name"].to_string())
        .collect();
    assert_eq!((reports.len(), names.len()), (600, 600));
    Ok(())
}

#[test]
fn whoever_names_nothing_is_told_what_to_do() -> Result<()> {
    let desk = Desk::with(&[])?;
    let lost = desk.run(&[])?;
    assert_eq!(lost.code, Some(1), "{lost:?}");
    ensure!(
        lost.talk.contains("-f FILE") && lost.talk.contains("--kubeconfig FILE"),
        "{lost:?}"
    );
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubeconfig = muster.kubeconfig_path();
    let empty = desk.run(&["--kubeconfig", &kubeconfig.to_string_lossy()])?;
    assert_eq!(empty.code, Some(1), "{empty:?}");
    ensure!(
        empty
            .talk
            .contains("the cluster has no policy; name some with"),
        "{empty:?}"
    );
    Ok(())
}
