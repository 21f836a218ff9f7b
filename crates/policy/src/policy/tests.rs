use super::*;
use serde_json::json;

fn object(kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"},
        "spec": spec,
    })
}

fn rules() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}])
}

fn single(changes: Value) -> Value {
    let mut spec = json!({"module": "m", "mutating": false, "rules": rules()});
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

#[test]
fn every_sort_has_a_name_of_its_own_in_reports() {
    let group = json!({
        "expression": "a()", "message": "no", "rules": rules(),
        "policies": {"a": {"module": "m"}},
    });
    for (kind, spec, name, place) in [
        (
            "ClusterAdmissionPolicy",
            single(json!({})),
            "clusterwide-p",
            "ClusterAdmissionPolicy p",
        ),
        (
            "AdmissionPolicy",
            single(json!({})),
            "namespaced-n-p",
            "AdmissionPolicy n/p",
        ),
        (
            "ClusterAdmissionPolicyGroup",
            group.clone(),
            "clusterwide-group-p",
            "ClusterAdmissionPolicyGroup p",
        ),
        (
            "AdmissionPolicyGroup",
            group,
            "namespaced-group-n-p",
            "AdmissionPolicyGroup n/p",
        ),
    ] {
        let object = object(kind, spec);
        assert!(Policy::is_one(&object));
        let policy = Policy::read(&object).unwrap();
        assert_eq!(
            (policy.unique_name().as_str(), policy.place().as_str()),
            (name, place)
        );
    }
    assert!(!Policy::is_one(
        &json!({"apiVersion": "v1", "kind": "AdmissionPolicy"})
    ));
}

#[test]
fn either_flag_leaves_a_policy_out() {
    for (changes, background) in [
        (json!({}), true),
        (json!({"background": true, "backgroundAudit": true}), true),
        (json!({"background": false}), false),
        (json!({"backgroundAudit": false}), false),
        (json!({"background": false, "backgroundAudit": true}), false),
    ] {
        let policy = Policy::read(&object("ClusterAdmissionPolicy", single(changes.clone())));
        assert_eq!(policy.unwrap().background, background, "{changes}");
    }
}

#[test]
fn annotations_that_make_no_sense_are_left_out() {
    for (mode, severity, category, expected) in [
        ("protect", "high", "PSP", (Some("high"), Some("PSP"))),
        ("protect", " High ", "", (Some("high"), None)),
        ("protect", "terrible", "a\u{7}b", (None, Some("ab"))),
        ("monitor", "high", "PSP", (Some("info"), Some("PSP"))),
    ] {
        let mut object = object("ClusterAdmissionPolicy", single(json!({"mode": mode})));
        object["metadata"]["annotations"] = json!({
            "io.kubewarden.policy.severity": severity,
            "io.kubewarden.policy.category": category,
        });
        let policy = Policy::read(&object).unwrap();
        assert_eq!(
            (policy.severity(), policy.category()),
            expected,
            "{mode} {severity}"
        );
    }
}

#[test]
fn what_matters_changes_the_hash_and_nothing_else() {
    let plain = object("ClusterAdmissionPolicy", single(json!({})));
    let hash = |object: &Value| Policy::read(object).unwrap().hash();
    for (pointer, value, changes) in [
        ("/metadata/resourceVersion", json!("8"), false),
        ("/metadata/labels", json!({"a": "b"}), false),
        ("/status", json!({"policyStatus": "active"}), false),
        ("/spec/settings", json!({"a": 1}), true),
        ("/spec/mode", json!("monitor"), true),
        (
            "/metadata/annotations",
            json!({"io.kubewarden.policy.severity": "low"}),
            true,
        ),
    ] {
        let mut other = plain.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        other.pointer_mut(parent).unwrap()[field] = value;
        assert_eq!(hash(&other) != hash(&plain), changes, "{pointer}");
    }
}

#[test]
fn what_is_no_policy_says_why() {
    for (kind, spec, why) in [
        ("Pod", json!({}), "is no policy"),
        (
            "AdmissionPolicy",
            json!({"rules": 5}),
            "does not make sense",
        ),
        (
            "AdmissionPolicy",
            json!({"rules": rules()}),
            "no module is named",
        ),
        (
            "AdmissionPolicyGroup",
            json!({"expression": "a(", "policies": {}}),
            "the expression",
        ),
        (
            "AdmissionPolicyGroup",
            json!({"expression": "a()", "policies": {}}),
            "not in the group",
        ),
        (
            "AdmissionPolicyGroup",
            json!({"expression": "a()", "policies": {"a": {}}}),
            "no module is named",
        ),
        (
            "AdmissionPolicy",
            single(
                json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            ),
            "is no operator",
        ),
    ] {
        let error = Policy::read(&object(kind, spec)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
