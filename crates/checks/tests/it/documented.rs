//! What people read about checks is true: the table of our own, and every policy that is shown.

use crate::support::{builtin, directory, force, judge, served};
use muster_checks::Outcome;
use muster_checks::force::{Choice, Force, Sources};
use muster_checks::written::Written;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A file of the whole project.
fn file(name: &str) -> String {
    std::fs::read_to_string(directory("../..").join(name)).unwrap()
}

/// What is shown in a language.
fn shown(text: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let blocks = text.split(&start).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// What is in force by the ConfigMaps among some documents.
fn applied(documents: &str) -> Force {
    let mut sources = Sources::new();
    for document in documents.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        if object["kind"] != "ConfigMap" {
            continue;
        }
        let name = object["metadata"]["name"].as_str().unwrap();
        let schema = &object["metadata"]["annotations"]["trivy-operator.plugin.config.version"];
        let data = object["data"].as_object().unwrap().iter();
        // A value that is no text is refused by an API server.
        let data: BTreeMap<String, String> = data
            .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        let written = Written::read(name, schema.as_str(), &data);
        sources.insert(name.into(), written);
    }
    let mut force = Force::default();
    force.update(&sources, &served(), &Choice::default());
    assert!(force.troubles().is_empty(), "{:#?}", force.troubles());
    force
}

/// Which checks an object fails, and what is said.
fn failed(force: &Force, object: &Value) -> Vec<String> {
    let findings = judge(force, object).into_iter();
    let told = findings.filter(|finding| finding.outcome != Outcome::Pass);
    told.map(|finding| {
        let check = &finding.check;
        let messages = finding.messages.join("; ");
        format!("{} {} {messages}", check.id, check.severity)
    })
    .collect()
}

fn pod(container: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"containers": [container]}})
}

#[test]
fn the_table_has_every_check_of_ours_as_it_is() {
    let text = file("docs/config-audit.md");
    let rows = text.lines().filter(|line| line.starts_with("| MST-"));
    let documented: BTreeSet<String> = rows.map(str::to_owned).collect();
    let force = builtin();
    let real: BTreeSet<String> = force
        .policies()
        .map(|policy| {
            let check = policy.check.description();
            let kinds = policy.kinds.to_string().replace(',', ", ");
            let (id, title, severity) = (&check.id, &check.title, check.severity);
            format!("| {id} | {title} | {severity} | {kinds} |")
        })
        .collect();
    let missing: Vec<_> = real.difference(&documented).collect();
    let wrong: Vec<_> = documented.difference(&real).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "missing: {missing:#?}\nnot so: {wrong:#?}"
    );
}

#[test]
fn every_policy_that_is_shown_judges() {
    let text = file("docs/config-audit.md");
    let policies = shown(&text, "rego");
    let said: Vec<Vec<String>> = policies
        .iter()
        .map(|policy| {
            let force = force(&[("policy.shown.rego", policy), ("policy.shown.kinds", "Pod")]);
            assert!(force.troubles().is_empty(), "{:?}", force.troubles());
            let root = json!({"name": "app", "image": "a:1", "securityContext": {"runAsUser": 0}});
            failed(&force, &pod(root))
        })
        .collect();
    assert_eq!(
        said,
        [
            ["shown CRITICAL container app runs as root"],
            ["HOUSE-7 HIGH a:1 is not ours"],
        ]
    );
    let maps = shown(&text, "yaml").into_iter();
    let maps: Vec<String> = maps.filter(|one| one.contains("kind: ConfigMap")).collect();
    let force = applied(&maps.join("\n---\n"));
    let deployment = |labels: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": labels}});
    assert_eq!(
        failed(&force, &deployment(json!({}))),
        ["owner CRITICAL nobody owns it: set the label team"]
    );
    assert!(failed(&force, &deployment(json!({"team": "a"}))).is_empty());
}

#[test]
fn the_example_refuses_what_it_says() {
    let force = applied(&file("examples/config-policies.yaml"));
    assert_eq!(force.policies().count(), 6);
    assert_eq!(force.libraries().len(), 2);
    let labels = json!({"app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "b"});
    let labelled = |mut object: Value| {
        object["metadata"]["labels"] = labels.clone();
        object
    };
    let read_only = json!({"readOnlyRootFilesystem": true});
    let map = |data: Value| {
        labelled(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}),
        )
    };
    let service = |spec: Value| {
        labelled(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}),
        )
    };
    let image = |image: &str| {
        labelled(pod(
            json!({"name": "app", "image": image, "securityContext": read_only}),
        ))
    };
    let key = "-----BEGIN RSA PRIVATE KEY-----";
    for (object, expected) in [
        (image("host:5000/a:1"), &[][..]),
        (image("a@sha256:0123"), &[]),
        (
            image("host:5000/a"),
            &["uses_image_tag_latest MEDIUM host:5000/a is whatever is the latest today"],
        ),
        (
            labelled(pod(json!({"name": "app", "image": "a:1"}))),
            &["EXAMPLE-1 LOW container app may write to its root file system"],
        ),
        (map(json!({"port": "80"})), &[]),
        (
            map(json!({"PASSWORD": "x", "file": key})),
            &[
                "configmap_with_secret_data CRITICAL the value of file looks like a secret",
                "configmap_with_sensitive_data LOW the key PASSWORD is called as if it belonged into a Secret",
            ],
        ),
        (service(json!({"type": "ClusterIP"})), &[]),
        (
            service(json!({"externalIPs": ["192.0.2.1"]})),
            &["service_with_external_ip HIGH the Service takes the traffic to 192.0.2.1"],
        ),
        (
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}),
            &[
                "object_without_recommended_labels LOW the label app.kubernetes.io/name is missing; the label app.kubernetes.io/part-of is missing",
            ],
        ),
    ] {
        assert_eq!(failed(&force, &object), expected, "{object}");
    }
}
