use super::*;
use serde_json::{Value, json};

fn policy(kind: &str, spec: Value) -> Policy {
    let mut object = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
        "metadata": {"name": "p", "namespace": "own"},
        "spec": {"module": "m"},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    Policy::read(&object).unwrap()
}

fn served(group: &str, resource: &str, versions: &[&str], namespaced: bool) -> Served {
    Served {
        group: group.into(),
        resource: resource.into(),
        kind: "K".into(),
        namespaced,
        versions: versions.iter().map(|v| (*v).into()).collect(),
    }
}

fn rule(groups: &[&str], versions: &[&str], resources: &[&str], operations: &[&str]) -> Value {
    json!({"rules": [{"apiGroups": groups, "apiVersions": versions,
        "resources": resources, "operations": operations}]})
}

#[test]
fn rules_match_as_those_of_a_webhook() {
    let pods = served("", "pods", &["v1"], true);
    let scalers = served(
        "autoscaling",
        "horizontalpodautoscalers",
        &["v2", "v1"],
        true,
    );
    let nodes = served("", "nodes", &["v1"], false);
    for (spec, on, version) in [
        (
            rule(&[""], &["v1"], &["pods"], &["CREATE"]),
            &pods,
            Some("v1"),
        ),
        (rule(&["*"], &["*"], &["*"], &["*"]), &pods, Some("v1")),
        (rule(&[""], &["*"], &["*/*"], &["*"]), &pods, Some("v1")),
        (
            rule(&[""], &["v1"], &["pods/*"], &["CREATE"]),
            &pods,
            Some("v1"),
        ),
        (
            rule(&[""], &["v1"], &["pods/status"], &["CREATE"]),
            &pods,
            None,
        ),
        (rule(&[""], &["v1"], &["*/scale"], &["CREATE"]), &pods, None),
        (
            rule(&[""], &["v1"], &["services", "pods"], &["UPDATE", "CREATE"]),
            &pods,
            Some("v1"),
        ),
        (rule(&[""], &["v1"], &["pods"], &["UPDATE"]), &pods, None),
        (
            rule(&[""], &["v1"], &["pods"], &["DELETE", "CONNECT"]),
            &pods,
            None,
        ),
        (rule(&["apps"], &["v1"], &["pods"], &["*"]), &pods, None),
        (rule(&[""], &["v2"], &["pods"], &["*"]), &pods, None),
        (
            rule(&["apps", ""], &["v1"], &["deployments", "pods"], &["*"]),
            &pods,
            Some("v1"),
        ),
        (
            rule(&["autoscaling"], &["*"], &["*"], &["*"]),
            &scalers,
            Some("v2"),
        ),
        (
            rule(&["autoscaling"], &["v1"], &["*"], &["*"]),
            &scalers,
            Some("v1"),
        ),
        (
            rule(&["autoscaling"], &["v1", "v2"], &["*"], &["*"]),
            &scalers,
            Some("v2"),
        ),
        (
            rule(&[""], &["v1"], &["nodes"], &["CREATE"]),
            &nodes,
            Some("v1"),
        ),
    ] {
        let found = policy("ClusterAdmissionPolicy", spec.clone());
        assert_eq!(found.version_of(on), version, "{spec} on {}", on.resource);
    }
}

#[test]
fn a_scope_keeps_a_rule_inside_or_outside_of_namespaces() {
    let pods = served("", "pods", &["v1"], true);
    let nodes = served("", "nodes", &["v1"], false);
    for (scope, in_namespaces, outside) in [
        (Value::Null, true, true),
        (json!("*"), true, true),
        (json!("Namespaced"), true, false),
        (json!("Cluster"), false, true),
    ] {
        let mut spec = rule(&["*"], &["*"], &["*"], &["*"]);
        spec["rules"][0]["scope"] = scope.clone();
        let found = policy("ClusterAdmissionPolicy", spec);
        assert_eq!(found.version_of(&pods).is_some(), in_namespaces, "{scope}");
        assert_eq!(found.version_of(&nodes).is_some(), outside, "{scope}");
    }
    let own = policy("AdmissionPolicy", rule(&[""], &["*"], &["*"], &["*"]));
    assert!(own.version_of(&pods).is_some() && own.version_of(&nodes).is_none());
}

#[test]
fn what_speaks_about_others_is_never_judged() {
    let all = policy(
        "ClusterAdmissionPolicy",
        rule(&["*"], &["*"], &["*"], &["*"]),
    );
    for (group, resource, judged) in [
        ("", "pods", true),
        ("", "events", false),
        ("events.k8s.io", "events", false),
        ("example.com", "events", true),
        ("coordination.k8s.io", "leases", false),
        ("discovery.k8s.io", "endpointslices", false),
        ("wgpolicyk8s.io", "policyreports", false),
        ("openreports.io", "reports", false),
        ("reports.kyverno.io", "ephemeralreports", false),
        ("kyverno.io", "admissionreports", false),
        ("aquasecurity.github.io", "configauditreports", false),
        ("storage.sbomscanner.kubewarden.io", "images", false),
        ("sbomscanner.kubewarden.io", "registries", true),
        // An API server asks no webhook about whom it asks.
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            false,
        ),
        (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicybindings",
            false,
        ),
        ("example.com", "validatingadmissionpolicies", true),
    ] {
        let found = all
            .version_of(&served(group, resource, &["v1"], true))
            .is_some();
        assert_eq!(found, judged, "{group}/{resource}");
    }
}

#[test]
fn selectors_choose_objects_and_namespaces() {
    let labels = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect()
    };
    let namespaces = BTreeMap::from([
        ("prod".to_owned(), labels(&[("tier", "gold")])),
        ("own".to_owned(), labels(&[])),
    ]);
    let everything = rule(&["*"], &["*"], &["*"], &["*"]);
    let with = |changes: Value| {
        let mut spec = everything.clone();
        for (key, value) in changes.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    };
    let gold = with(json!({"namespaceSelector": {"matchLabels": {"tier": "gold"}}}));
    let named = with(json!({"namespaceSelector": {"matchExpressions":
        [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["own"]}]}}));
    let labelled = with(json!({"objectSelector": {"matchLabels": {"app": "web"}}}));
    let inside = with(json!({"allowInsideAdmissionControllerNamespace": true}));
    let pods = served("", "pods", &["v1"], true);
    let nodes = served("", "nodes", &["v1"], false);
    let spaces = served("", "namespaces", &["v1"], false);
    let web = [("app", "web")];
    let cluster = "ClusterAdmissionPolicy";
    for (kind, spec, on, namespace, name, own, expected) in [
        (cluster, &gold, &pods, Some("prod"), "a", &[][..], true),
        (cluster, &gold, &pods, Some("own"), "a", &[], false),
        (cluster, &gold, &pods, Some("unknown"), "a", &[], false),
        (cluster, &gold, &nodes, None, "a", &[], true),
        (cluster, &gold, &spaces, None, "x", &[], false),
        (
            cluster,
            &gold,
            &spaces,
            None,
            "x",
            &[("tier", "gold")],
            true,
        ),
        (cluster, &named, &pods, Some("own"), "a", &[], false),
        (cluster, &named, &pods, Some("prod"), "a", &[], true),
        (cluster, &named, &spaces, None, "own", &[], false),
        (cluster, &labelled, &pods, Some("own"), "a", &web, true),
        (cluster, &labelled, &pods, Some("own"), "a", &[], false),
        (
            cluster,
            &everything,
            &pods,
            Some("kubewarden"),
            "a",
            &[],
            false,
        ),
        (cluster, &inside, &pods, Some("kubewarden"), "a", &[], true),
        // The namespace of the admission controller is in itself.
        (
            cluster,
            &everything,
            &spaces,
            None,
            "kubewarden",
            &[],
            false,
        ),
        (cluster, &inside, &spaces, None, "kubewarden", &[], true),
        (cluster, &everything, &nodes, None, "kubewarden", &[], true),
        (
            "AdmissionPolicy",
            &everything,
            &pods,
            Some("own"),
            "a",
            &[],
            true,
        ),
        (
            "AdmissionPolicy",
            &everything,
            &pods,
            Some("prod"),
            "a",
            &[],
            false,
        ),
    ] {
        let found = policy(kind, spec.clone());
        let labels = labels(own);
        let target = Target {
            namespace,
            name,
            labels: &labels,
        };
        let selected = found.selects(on, target, &namespaces, Some("kubewarden"));
        assert_eq!(
            selected, expected,
            "{kind} {spec} {namespace:?}/{name} {own:?}"
        );
    }
}
