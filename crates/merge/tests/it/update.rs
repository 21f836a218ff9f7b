use crate::apply::{fields_of, schema};
use muster_merge::managed::MAX_ENTRIES;
use muster_merge::{ApplyRequest, Managed, Set, TooManyEntries, UpdateRequest};
use muster_merge::{apply, keep_times, update};
use serde_json::{Value, json};

fn written(live: Option<&Value>, new: Value, manager: &str, now: &str) -> Value {
    let reset = Set::of_fields(["status"]);
    update(UpdateRequest {
        live,
        new,
        schema: &schema(),
        manager,
        api_version: "v1",
        subresource: None,
        now,
        reset: &reset,
    })
    .unwrap()
}

fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("1");
    object
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "uid": "1"}, "spec": spec})
}

#[test]
fn a_creator_owns_what_it_sent_but_not_what_the_server_sets() {
    let new = json!({
        "apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "b", "generation": 1, "labels": {"app": "x"}},
        "spec": {"replicas": 1}, "status": {"ready": 1},
    });
    let created = written(None, new, "creator", "t1");
    assert_eq!(
        created["metadata"]["managedFields"],
        json!([{
            "manager": "creator", "operation": "Update", "apiVersion": "v1", "time": "t1",
            "fieldsType": "FieldsV1", "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {".": {}, "f:replicas": {}},
            },
        }]),
    );
}

#[test]
fn changed_fields_change_hands_and_removed_ones_are_forgotten() {
    let first = stored(written(
        None,
        object(json!({"replicas": 1, "image": "a"})),
        "one",
        "t1",
    ));
    let second = written(Some(&first), object(json!({"replicas": 2})), "two", "t2");
    assert_eq!(fields_of(&second, "one"), [".spec"]);
    assert_eq!(fields_of(&second, "two"), [".spec.replicas"]);
    let times: Vec<&Value> = second["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["time"])
        .collect();
    assert_eq!(times, ["t1", "t2"]);
}

#[test]
fn a_write_that_changes_nothing_leaves_ownership_and_times_alone() {
    let first = stored(written(None, object(json!({"replicas": 1})), "one", "t1"));
    let again = written(Some(&first), object(json!({"replicas": 1})), "two", "t2");
    assert_eq!(again, first);
}

#[test]
fn ownership_is_forgotten_on_request_and_not_taken_up_again_by_updates() {
    let first = stored(written(None, object(json!({"replicas": 1})), "one", "t1"));
    for reset in [json!([]), json!([{}])] {
        let mut new = object(json!({"replicas": 2}));
        new["metadata"]["managedFields"] = reset;
        let second = written(Some(&first), new, "two", "t2");
        assert_eq!(second["metadata"].get("managedFields"), None);
        let third = written(Some(&second), object(json!({"replicas": 3})), "two", "t3");
        assert_eq!(third["metadata"].get("managedFields"), None);
    }
}

#[test]
fn entries_a_client_sends_are_taken_unless_they_are_broken() {
    let first = stored(written(None, object(json!({"replicas": 1})), "one", "t1"));
    let mut new = object(json!({"replicas": 1}));
    new["metadata"]["managedFields"] = json!([{
        "manager": "renamed", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }]);
    let renamed = written(Some(&first), new.clone(), "two", "t2");
    assert_eq!(fields_of(&renamed, "renamed"), [".spec.replicas"]);
    new["metadata"]["managedFields"][0]["operation"] = json!("What");
    let kept = written(Some(&first), new, "two", "t2");
    assert_eq!(kept, first);
}

#[test]
fn a_status_writer_owns_status_alone() {
    let first = stored(written(None, object(json!({"replicas": 1})), "one", "t1"));
    let mut new = first.clone();
    new["spec"]["replicas"] = json!(9);
    new["status"] = json!({"ready": 1});
    new["metadata"]["managedFields"] = json!([]);
    let reset = Set::of_fields(["spec", "metadata"]);
    let second = update(UpdateRequest {
        live: Some(&first),
        new,
        schema: &schema(),
        manager: "",
        api_version: "v1",
        subresource: Some("status"),
        now: "t2",
        reset: &reset,
    })
    .unwrap();
    assert_eq!(fields_of(&second, "unknown"), [".status", ".status.ready"]);
    assert_eq!(fields_of(&second, "one"), [".spec", ".spec.replicas"]);
    let managed = Managed::of(&second).unwrap();
    assert!(
        managed
            .entries
            .iter()
            .any(|entry| entry.subresource == "status")
    );
}

#[test]
fn no_more_than_ten_updaters_are_remembered() {
    let mut live = stored(written(
        None,
        object(json!({"map": {"k": "0"}})),
        "first",
        "00",
    ));
    for number in 1..20 {
        let mut new = live.clone();
        new["spec"]["map"][format!("k{number}")] = json!("x");
        live = written(
            Some(&live),
            new,
            &format!("m{number}"),
            &format!("{number:02}"),
        );
    }
    let managed = Managed::of(&live).unwrap();
    assert_eq!(managed.entries.len(), 10);
    assert!(
        managed
            .entries
            .iter()
            .any(|entry| entry.manager == "ancient-changes")
    );
    let owned: usize = managed
        .entries
        .iter()
        .map(|entry| entry.fields.paths().len())
        .sum();
    assert_eq!(owned, 22);
}

#[test]
fn times_alone_are_no_change() {
    let live = stored(written(None, object(json!({"replicas": 1})), "one", "t1"));
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("t2");
    keep_times(&live, &mut new);
    assert_eq!(new, live);

    new["metadata"]["managedFields"][0]["time"] = json!("t2");
    new["spec"]["replicas"] = json!(2);
    keep_times(&live, &mut new);
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "t2");
}

/// An object whose fields as many appliers own.
fn crowded(count: usize) -> Value {
    let mut object = object(json!({"replicas": 1}));
    let entries = (0..count).map(|number| {
        json!({
            "manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1",
            "time": format!("{number:06}"), "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:map": {format!("f:{number}"): {}}}},
        })
    });
    object["metadata"]["managedFields"] = entries.collect();
    object
}

fn managers(object: &Value) -> Vec<String> {
    let entries = Managed::of(object).unwrap().entries;
    entries.into_iter().map(|entry| entry.manager).collect()
}

#[test]
fn a_client_cannot_send_more_than_a_thousand_entries() {
    let (small, full, large) = (crowded(1), crowded(MAX_ENTRIES), crowded(30_000));
    let schema = schema();
    for (live, new, subresource, count) in [
        (None, &full, None, None),
        (None, &large, None, Some(30_000)),
        (Some(&small), &full, None, None),
        (Some(&small), &large, None, Some(30_000)),
        // The entries of such a request are not read.
        (Some(&small), &large, Some("status"), None),
    ] {
        let written = update(UpdateRequest {
            live,
            new: new.clone(),
            schema: &schema,
            manager: "one",
            api_version: "v1",
            subresource,
            now: "t",
            reset: &Set::default(),
        });
        let refused = written.err().map(|TooManyEntries { count }| count);
        assert_eq!(refused, count);
    }
}

#[test]
fn an_object_that_is_stored_with_too_many_entries_can_be_written() {
    let live = crowded(30_000);
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    let updated = written(Some(&live), new.clone(), "one", "t");
    new["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let without = written(Some(&live), new, "one", "t");
    let configuration = json!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"replicas": 2},
    });
    let applied = apply(ApplyRequest {
        live: Some(&live),
        applied: &configuration,
        schema: &schema(),
        manager: "one",
        force: false,
        api_version: "v1",
        subresource: None,
        now: "t",
        reset: &Set::default(),
    });
    for written in [updated, without, applied.unwrap().object] {
        assert_eq!(fields_of(&written, "one"), [".spec.replicas"]);
        let managers = managers(&written);
        assert_eq!(managers.len(), MAX_ENTRIES);
        for (manager, expected) in [("m29999", true), ("m29001", true), ("m29000", false)] {
            let has = managers.iter().any(|name| name == manager);
            assert_eq!(has, expected, "{manager}");
        }
    }
}
