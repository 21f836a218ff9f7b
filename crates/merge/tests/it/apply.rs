use muster_kind::Schema;
use muster_kind::schema::{any, int32, list, map, object, string};
use muster_merge::{Applied, ApplyError, ApplyRequest, Managed, Set, apply};
use serde_json::{Value, json};

pub(crate) fn schema() -> Schema {
    let item = object()
        .field("name", string())
        .field("value", string())
        .field("other", string());
    let spec = object()
        .field("replicas", int32())
        .field("image", string())
        .field("map", map(string()))
        .field("whole", map(string()).atomic())
        .field("args", list(string()))
        .field("set", list(string()).set())
        .field("items", list(item).keyed_by(["name"]))
        .field("free", any());
    let metadata = object()
        .field("name", string())
        .field("namespace", string())
        .field("uid", string())
        .field("generation", int32())
        .field("labels", map(string()))
        .field("annotations", map(string()))
        .field("managedFields", list(any()));
    object()
        .field("apiVersion", string())
        .field("kind", string())
        .field("metadata", metadata)
        .field("spec", spec)
        .field("status", object().field("ready", int32()))
}

pub(crate) fn fields_of(object: &Value, manager: &str) -> Vec<String> {
    let managed = Managed::of(object).unwrap();
    let entries = managed
        .entries
        .iter()
        .filter(|entry| entry.manager == manager);
    let mut paths: Vec<String> = entries
        .flat_map(|entry| entry.fields.paths())
        .map(|path| path.to_string())
        .collect();
    paths.sort();
    paths
}

fn configuration(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

fn applied(
    live: Option<&Value>,
    spec: Value,
    manager: &str,
    force: bool,
) -> Result<Applied, ApplyError> {
    request(live, &configuration(spec), manager, force, "t1")
}

fn request(
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Applied, ApplyError> {
    apply(ApplyRequest {
        live,
        applied,
        schema: &schema(),
        manager,
        force,
        api_version: "v1",
        subresource: None,
        now,
        reset: &Set::of_fields(["status"]),
    })
}

/// Applies configurations one after the other, and returns the object.
fn story(steps: &[(&str, Value)]) -> Value {
    let mut live: Option<Value> = None;
    for (manager, spec) in steps {
        live = Some(
            applied(live.as_ref(), spec.clone(), manager, false)
                .unwrap()
                .object,
        );
    }
    live.unwrap()
}

#[test]
fn the_first_apply_creates_the_object_and_owns_it() {
    let created = applied(
        None,
        json!({"replicas": 1, "map": {"k": "v"}}),
        "one",
        false,
    )
    .unwrap();
    assert!(created.changed);
    assert_eq!(
        created.object["metadata"]["managedFields"],
        json!([{
            "manager": "one", "operation": "Apply", "apiVersion": "v1", "time": "t1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:map": {"f:k": {}}, "f:replicas": {}}},
        }]),
    );
}

#[test]
fn applying_the_same_again_changes_nothing_at_all() {
    let spec = json!({"replicas": 1, "items": [{"name": "x", "value": "1"}], "set": ["a"]});
    let live = story(&[("one", spec.clone())]);
    let again = request(Some(&live), &configuration(spec), "one", false, "t2").unwrap();
    assert_eq!(
        again,
        Applied {
            object: live,
            changed: false
        }
    );
}

#[test]
fn what_is_no_longer_applied_goes_unless_somebody_else_owns_it() {
    for (steps, expected) in [
        (
            vec![
                ("one", json!({"replicas": 1, "image": "a"})),
                ("one", json!({"replicas": 1})),
            ],
            json!({"replicas": 1}),
        ),
        (
            vec![
                ("one", json!({"replicas": 1, "image": "a"})),
                ("two", json!({"image": "a"})),
                ("one", json!({"replicas": 1})),
            ],
            json!({"replicas": 1, "image": "a"}),
        ),
        (
            vec![
                ("one", json!({"set": ["a", "b"]})),
                ("two", json!({"set": ["b", "c"]})),
                ("one", json!({"set": ["a"]})),
                ("two", json!({"set": ["c"]})),
            ],
            json!({"set": ["a", "c"]}),
        ),
        (
            vec![
                (
                    "one",
                    json!({"items": [{"name": "x", "value": "1"}, {"name": "y"}]}),
                ),
                ("two", json!({"items": [{"name": "x", "other": "2"}]})),
                ("one", json!({"replicas": 1})),
            ],
            json!({"replicas": 1, "items": [{"name": "x", "other": "2"}]}),
        ),
        (
            vec![
                ("one", json!({"map": {"a": "1", "b": "2"}})),
                ("one", json!({"map": {"b": "2"}})),
            ],
            json!({"map": {"b": "2"}}),
        ),
        (
            vec![
                ("one", json!({"free": {"a": {"b": 1, "c": 2}, "l": [1]}})),
                ("one", json!({"free": {"a": {"b": 1}}})),
            ],
            json!({"free": {"a": {"b": 1}}}),
        ),
        (
            vec![
                ("one", json!({"whole": {"a": "1"}, "args": ["x"]})),
                ("one", json!({"args": ["y"]})),
            ],
            json!({"args": ["y"]}),
        ),
    ] {
        assert_eq!(story(&steps)["spec"], expected, "{steps:?}");
    }
}

#[test]
fn a_whole_struct_goes_when_nobody_owns_any_of_it() {
    let mut live = story(&[("one", json!({"replicas": 1}))]);
    let bare = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}});
    let after = request(Some(&live), &bare, "one", false, "t2")
        .unwrap()
        .object;
    assert_eq!(after.get("spec"), None);
    assert_eq!(after["metadata"].get("managedFields"), None);
    // A field somebody else wrote keeps the struct.
    live["spec"]["image"] = json!("b");
    live["metadata"]["managedFields"]
        .as_array_mut()
        .unwrap()
        .push(json!({
            "manager": "two", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:image": {}}},
        }));
    let after = request(Some(&live), &bare, "one", false, "t2")
        .unwrap()
        .object;
    assert_eq!(after["spec"], json!({"image": "b"}));
}

#[test]
fn equal_values_are_shared_and_different_ones_conflict() {
    let live = story(&[
        ("one", json!({"replicas": 1, "image": "a"})),
        ("two", json!({"replicas": 1})),
    ]);
    assert_eq!(fields_of(&live, "one"), [".spec.image", ".spec.replicas"]);
    assert_eq!(fields_of(&live, "two"), [".spec.replicas"]);

    let problem = applied(Some(&live), json!({"image": "b"}), "two", false).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.image",
    );
    let forced = applied(Some(&live), json!({"image": "b"}), "two", true)
        .unwrap()
        .object;
    assert_eq!(forced["spec"], json!({"image": "b", "replicas": 1}));
    assert_eq!(fields_of(&forced, "one"), [".spec.replicas"]);
    assert_eq!(fields_of(&forced, "two"), [".spec.image"]);
}

#[test]
fn conflicts_are_listed_by_their_owners() {
    let mut live = story(&[("one", json!({"replicas": 1, "image": "a"}))]);
    live["spec"]["map"] = json!({"k": "v"});
    live["metadata"]["managedFields"]
        .as_array_mut()
        .unwrap()
        .push(json!({
            "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
            "time": "t0", "subresource": "scale",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:map": {"f:k": {}}}},
        }));
    let spec = json!({"replicas": 2, "image": "b", "map": {"k": "w"}});
    let ApplyError::Conflicts(conflicts) = applied(Some(&live), spec, "two", false).unwrap_err()
    else {
        panic!("no conflicts");
    };
    assert_eq!(
        conflicts.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"kubectl-client-side-apply\" with \
         subresource \"scale\" using v1:\n- .spec.map.k\nconflicts with \"one\":\n\
         - .spec.image\n- .spec.replicas",
    );
    assert_eq!(conflicts.0[1].message(), "conflict with \"one\"");
    assert_eq!(conflicts.0[1].path.to_string(), ".spec.image");
}

#[test]
fn atomic_values_conflict_as_a_whole() {
    let live = story(&[(
        "one",
        json!({"whole": {"a": "1"}, "args": ["a"], "free": {"l": [1]}}),
    )]);
    for (spec, path) in [
        (json!({"whole": {"b": "2"}}), ".spec.whole"),
        (json!({"args": ["b"]}), ".spec.args"),
        (json!({"free": {"l": [2]}}), ".spec.free.l"),
    ] {
        let problem = applied(Some(&live), spec, "two", false)
            .unwrap_err()
            .to_string();
        assert!(
            problem.ends_with(&format!("conflict with \"one\": {path}")),
            "{problem}"
        );
    }
}

#[test]
fn fields_of_unknown_origin_belong_to_whoever_wrote_before_the_first_apply() {
    let mut live = configuration(json!({"replicas": 1, "image": "a"}));
    live["metadata"]["uid"] = json!("1");
    let problem = applied(Some(&live), json!({"image": "b"}), "one", false).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .spec.image",
    );
    let after = applied(Some(&live), json!({"replicas": 1}), "one", false)
        .unwrap()
        .object;
    assert_eq!(fields_of(&after, "one"), [".spec.replicas"]);
    assert_eq!(
        fields_of(&after, "before-first-apply"),
        [".spec", ".spec.image", ".spec.replicas"]
    );
}

#[test]
fn kubectl_takes_over_what_its_annotation_says_it_applied() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = configuration(json!({"replicas": 1, "image": "a"})).to_string();
    let mut live = configuration(json!({"replicas": 1, "image": "changed"}));
    live["metadata"]["annotations"] = json!({annotation: last});
    live["metadata"]["managedFields"] = json!([{
        "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {
            "f:metadata": {"f:annotations": {(format!("f:{annotation}")): {}}},
            "f:spec": {"f:replicas": {}, "f:image": {}},
        },
    }]);
    // What somebody changed since is a conflict, alone.
    let problem = applied(
        Some(&live),
        json!({"replicas": 2, "image": "b"}),
        "kubectl",
        false,
    )
    .unwrap_err();
    assert_eq!(
        problem.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: \
         .spec.image",
    );
    let after = applied(Some(&live), json!({"replicas": 2}), "kubectl", false)
        .unwrap()
        .object;
    assert_eq!(after["spec"]["replicas"], 2);
    let fresh: Value = serde_json::from_str(
        after["metadata"]["annotations"][annotation]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(fresh, configuration(json!({"replicas": 2})));
    // Nobody else is trusted so.
    assert!(applied(Some(&live), json!({"replicas": 2}), "other", false).is_err());
}

#[test]
fn what_a_request_does_not_reach_it_does_not_own() {
    let mut configuration = configuration(json!({"replicas": 1}));
    configuration["status"] = json!({"ready": 1});
    let created = request(None, &configuration, "one", false, "t1")
        .unwrap()
        .object;
    assert_eq!(fields_of(&created, "one"), [".spec.replicas"]);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut managed = configuration(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let mut version = configuration(json!({}));
    version["apiVersion"] = json!("v2");
    let duplicates = configuration(json!({"items": [{"name": "x"}, {"name": "x"}]}));
    let mut broken = configuration(json!({}));
    broken["metadata"]["managedFields"] = json!([{"operation": "What"}]);
    for (live, applied, message) in [
        (None, &managed, "metadata.managedFields must be nil"),
        (
            None,
            &version,
            "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
        ),
        (
            None,
            &duplicates,
            "failed to create typed patch object (/a; /v1, Kind=Thing): .spec.items: duplicate \
             entries for key [name=\"x\"]",
        ),
        (
            Some(&broken),
            &configuration(json!({})),
            "failed to decode managed fields: operation must be `Apply` or `Update`",
        ),
    ] {
        let problem = request(live, applied, "one", false, "t1").unwrap_err();
        assert_eq!(problem.to_string(), message);
    }
}
