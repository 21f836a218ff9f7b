//! However configuration is checked, the same is reported: by a server at all times, once from the
//! server, and once from the files that things came from.

use super::{BINARY, SOON, Site};
use anyhow::{Context, Result, ensure};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

fn objects() -> Vec<Value> {
    let containers = json!([{"name": "main", "image": "web:latest", "securityContext": {"privileged": true}},
        {"name": "side", "image": "side:1"}]);
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "annotations": {
                "exception.audit.kubewarden.io/MST-W001": "until 2099-12-31: moving soon"}},
            "spec": {"selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": containers}}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings.yaml", "namespace": "shop"},
            "data": {"password": "hunter2hunter2"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "shop:reader"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]}),
    ]
}

fn policies() -> Value {
    let own = "# METADATA\n# title: No settings\n# custom:\n#   id: MINE-1\n#   severity: LOW\npackage mine\n\n\
        deny contains {\"msg\": \"no settings\", \"scope\": {\"type\": \"ConfigMapKey\", \"value\": key}} if some key, _ in input.data\n";
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "trivy-operator-policies-config", "namespace": "trivy-operator"},
        "data": {"policy.mine.rego": own, "policy.mine.kinds": "ConfigMap"}})
}

/// Reports by name, without what differs from one time to another.
fn reports(list: &Value) -> BTreeMap<String, Value> {
    let items = list["items"].as_array().into_iter().flatten();
    let items = items.map(|report| {
        let (mut content, metadata) = (report["report"].clone(), &report["metadata"]);
        content["updateTimestamp"] = Value::Null;
        let mut owner = metadata["ownerReferences"][0].clone();
        owner["uid"] = Value::Null;
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let told = json!([
            report["apiVersion"],
            report["kind"],
            metadata["namespace"],
            metadata["labels"],
            metadata["annotations"],
            owner,
            content
        ]);
        (name, told)
    });
    items.collect()
}

fn once(arguments: &[&str]) -> Result<BTreeMap<String, Value>> {
    let output = Command::new(BINARY)
        .args(["audit", "-o", "yaml"])
        .args(arguments)
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let list: Value = serde_saphyr::from_str(&String::from_utf8(output.stdout)?)?;
    Ok(reports(&list))
}

#[test]
fn a_server_and_a_single_audit_report_the_same() -> Result<()> {
    let muster = Muster::start_told(
        BINARY,
        &["--scanning", "off", "--audit", "off"],
        &[("MUSTER_CONFIG_AUDIT", "on")],
    )?;
    let site = Site::of(&muster)?;
    let create = |object: &Value| {
        let arguments = ["create", "-f", "-"];
        site.kubectl.succeed_with(&arguments, &object.to_string())
    };
    create(
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trivy-operator"}}),
    )?;
    create(&policies())?;
    for object in objects() {
        create(&object)?;
    }
    let stored = || -> Result<BTreeMap<String, Value>> {
        let mut all = reports(&site.get(&["configauditreports", "-n", "shop"])?);
        all.extend(reports(&site.get(&["clusterconfigauditreports"])?));
        Ok(all)
    };
    let kubeconfig = muster.kubeconfig_path().display().to_string();
    let directory = tempfile::tempdir()?;
    let write = |name: &str, objects: &[Value]| -> Result<String> {
        let path = directory.path().join(name);
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(&path, documents.join("\n---\n"))?;
        Ok(path.display().to_string())
    };
    let (manifests, written) = (
        write("objects.yaml", &objects())?,
        write("policies.yaml", &[policies()])?,
    );
    // Once, from the server, by its own policies; it is read until everything is reported there.
    let within_shop = |reports: BTreeMap<String, Value>| -> BTreeMap<String, Value> {
        let all = reports.into_iter();
        all.filter(|(_, report)| report[2] == "shop" || report[2].is_null())
            .collect()
    };
    let kept = wait::until("all reports", SOON, || {
        let kept = stored()?;
        let once = within_shop(once(&["--kubeconfig", &kubeconfig])?);
        Ok((kept == once && kept.len() >= objects().len()).then_some(kept))
    })
    .with_context(|| format!("{:#?}", stored().unwrap_or_default()))?;
    // Once, from the files.
    let from_files = once(&["-f", &manifests, "--policy", &written])?;
    assert_eq!(from_files.len(), objects().len());
    for (name, report) in &from_files {
        let mut known = kept.get(name).context("a report")?.clone();
        // What the server adds to an object is part of its hash, and of nothing else here.
        known[3]["resource-spec-hash"] = report[3]["resource-spec-hash"].clone();
        assert_eq!(known, *report, "{name}");
    }
    let web = &kept["deployment-web"][6]["checks"];
    let checks = web.as_array().context("checks")?;
    for (id, success) in [("MST-B001", false), ("MST-W001", true)] {
        let check = checks.iter().find(|check| check["checkID"] == id);
        assert_eq!(check.context(id)?["success"], success, "{web}");
    }
    let own = kept.values().any(|report| {
        let checks = report[6]["checks"].as_array();
        checks.is_some_and(|checks| checks.iter().any(|check| check["checkID"] == "MINE-1"))
    });
    ensure!(own, "{kept:?}");
    Ok(())
}
