//! The example of the specification: two pods, one of them privileged, and three policies, each in
//! another language; the first comes from a registry.

use super::{Audited, BINARY, Site, cel, merge};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use muster_testkit::policies::{self, Abi};
use muster_testkit::push::Pusher;
use muster_testkit::registry::Registry;
use serde_json::{Value, json};

const ESCALATION: &str = r#"
package policy

deny contains "Privilege escalation has to be refused" if {
    some container in input.request.object.spec.containers
    container.securityContext.allowPrivilegeEscalation == true
}
"#;

fn push(registry: &Registry) -> Result<String> {
    let wasm = policies::forbidding(
        Abi::Wapc,
        r#""privileged":true"#,
        "Privileged container is not allowed",
    );
    let runtime = tokio::runtime::Runtime::new()?;
    let layers = [(
        "application/vnd.wasm.content.layer.v1+wasm",
        wasm.as_slice(),
    )];
    let config = ("application/vnd.wasm.config.v1+json", b"{}".as_slice());
    let pusher = Pusher::new(registry)?;
    runtime.block_on(pusher.artifact("policies/privileged", Some("v1"), config, &layers))?;
    Ok(format!(
        "registry://{}/policies/privileged:v1",
        registry.host()
    ))
}

fn apply(site: &Site, registry: &Registry) -> Result<()> {
    let server = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": "PolicyServer",
        "metadata": {"name": "default"},
        "spec": {"image": "registry.example/policy-server:v1", "replicas": 1,
            "insecureSources": [registry.host()]},
    });
    let pods = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        "operations": ["CREATE", "UPDATE"]}]);
    let privileged = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "privileged-containers"},
        "spec": {"module": push(registry)?, "mutating": false, "rules": pods},
    });
    let labels = cel(
        "ClusterAdmissionPolicy",
        "safe-labels",
        "!has(object.metadata.labels) || !('hello-world' in object.metadata.labels)",
        json!({
            "metadata": {"annotations": {
                "io.kubewarden.policy.severity": "low",
                "io.kubewarden.policy.category": "Resource validation"}},
            "spec": {"rules": super::everything()},
        }),
    );
    let escalation = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": "AdmissionPolicy",
        "metadata": {"name": "allow-privilege-escalation-psp", "namespace": "default",
            "annotations": {
                "io.kubewarden.policy.severity": "medium",
                "io.kubewarden.policy.category": "PSP"}},
        "spec": {"module": "builtin:rego", "mutating": true, "rules": pods,
            "settings": {"rego": ESCALATION}},
    });
    site.apply(&[server, privileged, labels, escalation])
}

/// What the specification shows, without what differs from run to run.
fn expected(name: &str, first: Value) -> Value {
    let line = |policy: &str, mutating: bool, more: Value| {
        let mut line = json!({
            "policy": policy,
            "properties": {if mutating { "mutating" } else { "validating" }: "true"},
            "resourceSelector": {}, "result": "pass", "scored": true, "source": "kubewarden",
        });
        merge(&mut line, more);
        line
    };
    let failed = first["result"] == "fail";
    let low = json!({"category": "Resource validation", "severity": "low"});
    let medium = json!({"category": "PSP", "severity": "medium"});
    json!({
        "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
        "metadata": {
            "labels": {"app.kubernetes.io/managed-by": "kubewarden",
                // The second example of the specification lacks this one.
                "kubewarden.io/policyreport-version": "v2"},
            "namespace": "default",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name}],
        },
        "results": [
            // The example calls this one `privileged-pods`, its text `privileged-containers`.
            line("clusterwide-privileged-containers", false, first),
            line("clusterwide-safe-labels", false, low),
            line("namespaced-default-allow-privilege-escalation-psp", true, medium),
        ],
        "scope": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": "default"},
        "summary": {"error": 0, "fail": u8::from(failed), "pass": 3 - u8::from(failed),
            "skip": 0, "warn": 0},
    })
}

/// Takes away what differs from run to run, after having looked at it.
fn constant(site: &Site, mut report: Value, pod: &Value) -> Result<Value> {
    let (uid, revision) = (&pod["metadata"]["uid"], &pod["metadata"]["resourceVersion"]);
    assert_eq!(&report["metadata"]["name"], uid);
    assert_eq!(&report["scope"]["uid"], uid);
    assert_eq!(&report["scope"]["resourceVersion"], revision);
    assert_eq!(&report["metadata"]["ownerReferences"][0]["uid"], uid);
    let lines = report["results"].as_array().context("results")?.clone();
    for line in &lines {
        let (properties, name) = (&line["properties"], &line["properties"]["policy-name"]);
        let name = name.as_str().context("a name")?;
        let policy = match properties["policy-namespace"].as_str() {
            Some(namespace) => site.get(&["admissionpolicy", name, "-n", namespace])?,
            None => site.get(&["clusteradmissionpolicy", name])?,
        };
        assert_eq!(properties["policy-uid"], policy["metadata"]["uid"]);
        assert!(properties["policy-resource-version"].as_str().is_some());
        assert_eq!(line["timestamp"]["nanos"], 0);
        let seconds = line["timestamp"]["seconds"].as_i64().context("a time")?;
        assert!((jiff::Timestamp::now().as_second() - seconds).abs() < 600);
    }
    // The text asks for the name and the namespace of the policy, which the example omits.
    let differing = [
        "policy-uid",
        "policy-resource-version",
        "policy-name",
        "policy-namespace",
    ];
    for line in report["results"].as_array_mut().context("results")? {
        let properties = line["properties"].as_object_mut().context("properties")?;
        properties.retain(|key, _| !differing.contains(&key.as_str()));
        line.as_object_mut().context("a line")?.remove("timestamp");
    }
    let mut remove = |at: &str, fields: &[&str]| {
        if let Some(object) = report.pointer_mut(at).and_then(Value::as_object_mut) {
            object.retain(|key, _| !fields.contains(&key.as_str()));
        }
    };
    let written = [
        "name",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        // What the report was made from: ours.
        "annotations",
    ];
    remove("/metadata", &written);
    remove("/metadata/ownerReferences/0", &["uid"]);
    remove("/scope", &["uid", "resourceVersion"]);
    Ok(report)
}

fn holds(site: &Site, registry: &Registry) -> Result<()> {
    apply(site, registry)?;
    let privileged = json!({"spec": {"containers": [{"name": "c", "image": "nginx:1",
        "securityContext": {"privileged": true}}]}});
    let plain = site.pod("default", "nginx-unprivileged", json!({}))?;
    let bad = site.pod("default", "nginx-privileged", privileged)?;
    let three = |report: &Value| report["results"].as_array().is_some_and(|r| r.len() == 3);
    let found = site.report_when("three verdicts on the plain pod", &plain, three)?;
    let found = constant(site, found, &plain)?;
    let first = json!({"result": "pass"});
    pretty_assertions(&found, &expected("nginx-unprivileged", first));
    let found = site.report_when("three verdicts on the privileged pod", &bad, three)?;
    let found = constant(site, found, &bad)?;
    let first = json!({"result": "fail", "message": "Privileged container is not allowed"});
    pretty_assertions(&found, &expected("nginx-privileged", first));
    // Reports are served in the older version too, with the same content.
    let uid = bad["metadata"]["uid"].as_str().context("a UID")?;
    let older = site.get(&[
        "policyreports.v1alpha2.wgpolicyk8s.io",
        uid,
        "-n",
        "default",
    ])?;
    assert_eq!(older["apiVersion"], "wgpolicyk8s.io/v1alpha2");
    assert_eq!(older["summary"]["fail"], 1);
    Ok(())
}

fn pretty_assertions(found: &Value, expected: &Value) {
    assert_eq!(found, expected, "found {found:#}\nexpected {expected:#}");
}

#[test]
fn the_example_of_the_specification_holds_in_one_process() -> Result<()> {
    let registry = Registry::start()?;
    let muster = Muster::start(BINARY)?;
    holds(&Site::of(&muster)?, &registry).context(muster.process().log_tail())
}

#[test]
fn the_example_of_the_specification_holds_in_a_cluster() -> Result<()> {
    let registry = Registry::start()?;
    let audited = Audited::start(&[])?;
    holds(&audited.site()?, &registry).context(audited.log())?;
    Ok(())
}
