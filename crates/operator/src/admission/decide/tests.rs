use super::*;
use muster_api::scanner;

fn kind(name: &str) -> Kind {
    let kinds = scanner::kinds();
    kinds.into_iter().find(|kind| kind.kind == name).unwrap()
}

fn review(kind: &str, operation: &str, old: Option<&Value>, new: Option<&Value>) -> Review {
    asked_by("jane", "", kind, operation, old, new)
}

fn asked_by(
    user: &str,
    subresource: &str,
    kind: &str,
    operation: &str,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Review {
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": {"group": scanner::GROUP, "version": "v1alpha1", "kind": kind},
            "operation": operation, "subResource": subresource, "namespace": "default",
            "userInfo": {"username": user}, "object": new, "oldObject": old,
        },
    });
    Review::read(body.to_string().as_bytes()).unwrap()
}

fn object(kind: &str, spec: Value) -> Value {
    let name = match kind {
        "WorkloadScanConfiguration" => "default",
        _ => "x",
    };
    json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

#[test]
fn what_is_wrong_is_refused_by_its_field() {
    let accounts = Accounts::in_namespace("muster");
    for (kind_name, spec, fields) in [
        ("Registry", json!({"uri": "ghcr.io"}), &[][..]),
        ("Registry", json!({}), &["spec.uri"]),
        (
            "Registry",
            json!({"uri": "ghcr.io", "scanInterval": "1s"}),
            &["spec.scanInterval"],
        ),
        (
            "Registry",
            json!({"uri": "ghcr.io", "catalogType": "NoCatalog"}),
            &["spec.repositories"],
        ),
        (
            "Registry",
            json!({"uri": "ghcr.io", "catalogType": "Other"}),
            &["spec.catalogType"],
        ),
        (
            "Registry",
            json!({"uri": "ghcr.io", "repositories": [
                {"name": "a", "matchConditions": [{"name": "c", "expression": "tag =="}]},
            ]}),
            &["spec.repositories[0].matchConditions[0].expression"],
        ),
        ("ScanJob", json!({"registry": "r"}), &[]),
        ("ScanJob", json!({}), &["spec.registry"]),
        ("RegistryDiscovery", json!({"registry": "r"}), &[]),
        (
            "RegistryDiscovery",
            json!({"registry": 1}),
            &["spec.registry"],
        ),
        ("VEXHub", json!({"url": "https://hub.example.org"}), &[]),
        (
            "VEXHub",
            json!({"url": "git://hub.example.org"}),
            &["spec.url"],
        ),
        ("WorkloadScanConfiguration", json!({}), &[]),
        (
            "WorkloadScanConfiguration",
            json!({"scanInterval": "1"}),
            &["spec.scanInterval"],
        ),
    ] {
        let new = object(kind_name, spec);
        let review = review(kind_name, "CREATE", None, Some(&new));
        let found = match judged(&review, &kind(kind_name), &accounts) {
            Ok(()) => Vec::new(),
            Err(refusal) => {
                assert_eq!(
                    (refusal.code, refusal.reason),
                    (422, "Invalid"),
                    "{refusal}"
                );
                refusal
                    .causes
                    .into_iter()
                    .map(|cause| cause.field)
                    .collect()
            }
        };
        assert_eq!(found, fields, "{new}");
    }
}

#[test]
fn an_update_is_refused_for_what_it_makes_wrong() {
    let accounts = Accounts::in_namespace("muster");
    let well = object("Registry", json!({"uri": "ghcr.io"}));
    // As one from before there were webhooks.
    let ill = object("Registry", json!({"uri": "ghcr.io", "scanInterval": "1s"}));
    let worse = object(
        "Registry",
        json!({"uri": "not a host", "scanInterval": "1s"}),
    );
    let mut noted = ill.clone();
    noted["metadata"]["annotations"] = json!({"a": "b"});
    let mut leaving = ill.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
    let job = |registry: &str| object("ScanJob", json!({"registry": registry}));
    let odd = |registry: &str| object("ScanJob", json!({"registry": registry, "repositories": 1}));
    for (kind_name, old, new, fields) in [
        ("Registry", &well, &ill, &["spec.scanInterval"][..]),
        ("Registry", &ill, &noted, &[]),
        ("Registry", &ill, &worse, &["spec.uri"]),
        ("Registry", &worse, &ill, &[]),
        ("Registry", &well, &leaving, &[]),
        ("ScanJob", &job("a"), &job("a"), &[]),
        ("ScanJob", &job("a"), &job("b"), &["spec.registry"]),
        // What was misshapen before does not unlock the rest.
        ("ScanJob", &odd("a"), &odd("a"), &[]),
        ("ScanJob", &odd("a"), &odd("b"), &["spec.registry"]),
    ] {
        let review = review(kind_name, "UPDATE", Some(old), Some(new));
        let judged = judged(&review, &kind(kind_name), &accounts);
        let causes = judged.err().map(|refusal| refusal.causes);
        let causes = causes.into_iter().flatten();
        let found: Vec<String> = causes.map(|cause| cause.field).collect();
        assert_eq!(found, fields, "{old} to {new}");
    }
}

#[test]
fn a_managed_registry_is_the_controllers_by_every_door() {
    let accounts = Accounts::in_namespace("muster");
    let mut managed = object("Registry", json!({"uri": "ghcr.io"}));
    managed["metadata"]["labels"] = json!({guard::WORKLOAD_SCAN: "true"});
    let mut other = managed.clone();
    other["status"] = json!({"imagesCount": 1});
    let controller = accounts.controller.as_str();
    for (user, subresource, operation, old, new, allowed) in [
        ("jane", "", "CREATE", None, Some(&managed), false),
        ("jane", "", "UPDATE", Some(&managed), Some(&other), false),
        (
            "jane",
            "status",
            "UPDATE",
            Some(&managed),
            Some(&other),
            false,
        ),
        ("jane", "", "DELETE", Some(&managed), None, false),
        (controller, "", "CREATE", None, Some(&managed), true),
        (
            controller,
            "status",
            "UPDATE",
            Some(&managed),
            Some(&other),
            true,
        ),
        (controller, "", "DELETE", Some(&managed), None, true),
    ] {
        let review = asked_by(user, subresource, "Registry", operation, old, new);
        let judged = judged(&review, &kind("Registry"), &accounts);
        assert_eq!(judged.is_ok(), allowed, "{user}: {operation} {subresource}");
        if let Err(refusal) = judged {
            assert_eq!(refusal.code, 403);
            assert!(
                refusal.message.contains("managed by the workload scan"),
                "{refusal}"
            );
            assert!(refusal.message.contains("\"x\""), "{refusal}");
        }
    }
}

#[test]
fn an_object_gets_the_defaults_that_it_lacks() {
    let wanted = json!({"uri": "ghcr.io", "insecure": true, "repositories": [{"name": "a"}]});
    let new = object("Registry", wanted);
    let asked = review("Registry", "CREATE", None, Some(&new));
    let operations = defaulted(&asked, &kind("Registry"));
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    for expected in [
        add("/spec/catalogType", json!("OCIDistribution")),
        add("/spec/scanJobsHistoryLimit", json!(10)),
        add("/spec/repositories/0/matchOperator", json!("And")),
    ] {
        assert!(operations.contains(&expected), "{operations:?}");
    }
    let told = |path: &str| operations.iter().any(|operation| operation["path"] == path);
    assert!(
        !told("/spec/insecure") && !told("/spec/uri"),
        "{operations:?}"
    );
    // Nothing is lacking any more.
    let mut whole = new.clone();
    structural::set_defaults(&mut whole, &kind("Registry").schema);
    let again = review("Registry", "UPDATE", Some(&whole), Some(&whole));
    assert_eq!(defaulted(&again, &kind("Registry")), Vec::<Value>::new());
    // An absent object has no defaults, and a null that cannot be gets one.
    let gone = review("Registry", "DELETE", Some(&whole), None);
    assert_eq!(defaulted(&gone, &kind("Registry")), Vec::<Value>::new());
    whole["spec"]["insecure"] = Value::Null;
    let nothing = review("Registry", "CREATE", None, Some(&whole));
    let replaced = json!({"op": "replace", "path": "/spec/insecure", "value": false});
    assert_eq!(defaulted(&nothing, &kind("Registry")), vec![replaced]);
}

#[test]
fn a_key_is_written_as_a_pointer_writes_it() {
    let mut operations = Vec::new();
    let old = json!({"a/b": {}, "c~d": [{}]});
    let new = json!({"a/b": {"x": 1}, "c~d": [{"y": 2}]});
    added(&old, &new, &mut String::new(), &mut operations);
    let paths: Vec<&Value> = operations.iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["/a~1b/x", "/c~0d/0/y"]);
}
