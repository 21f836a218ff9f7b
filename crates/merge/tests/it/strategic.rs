use muster_kind::Schema;
use muster_kind::schema::{Strategic, any, list, map, object, string};
use muster_merge::strategic::{self, StrategicError};
use serde_json::{Value, json};

fn merging(mut list: Schema, key: Option<&str>) -> Schema {
    list.strategic = Strategic {
        merge: true,
        merge_key: key.map(String::from),
        retain_keys: false,
    };
    list
}

fn pod() -> Schema {
    let variable = object().field("name", string()).field("value", string());
    let container = object()
        .field("name", string())
        .field("image", string())
        .field("args", list(string()))
        .field("env", merging(list(variable), Some("name")));
    let spec = object()
        .field("containers", merging(list(container), Some("name")))
        .field("strategy", any());
    let metadata = object()
        .field("labels", map(string()))
        .field("finalizers", merging(list(string()), None));
    object().field("metadata", metadata).field("spec", spec)
}

fn patched(document: &Value, patch: &Value) -> Result<Value, StrategicError> {
    let mut document = document.clone();
    strategic::apply(&mut document, patch, &pod()).map(|()| document)
}

fn containers(value: Value) -> Value {
    json!({"spec": {"containers": value}})
}

fn finalizers(value: Value) -> Value {
    json!({"metadata": {"finalizers": value}})
}

#[test]
fn lists_merge_as_the_schema_says() {
    let live = containers(json!([
        {"name": "a", "image": "a:1", "args": ["x"],
         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "b", "image": "b:1"},
    ]));
    for (patch, result) in [
        (
            json!([{"name": "a", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]),
            json!([
                {"name": "a", "image": "a:1", "args": ["x"], "env": [
                    {"name": "A", "value": "1"}, {"name": "B", "value": "3"},
                    {"name": "C", "value": "4"}]},
                {"name": "b", "image": "b:1"},
            ]),
        ),
        (
            json!([{"name": "a", "args": ["y", "z"], "env": null}]),
            json!([
                {"name": "a", "image": "a:1", "args": ["y", "z"]},
                {"name": "b", "image": "b:1"},
            ]),
        ),
        (
            json!([{"name": "a", "$patch": "delete"}, {"name": "c", "image": "c:1", "args": null}]),
            json!([{"name": "c", "image": "c:1"}, {"name": "b", "image": "b:1"}]),
        ),
        (
            json!([{"$patch": "replace"}, {"name": "z"}]),
            json!([{"name": "z"}]),
        ),
        (
            json!([{"name": "b", "$patch": "delete"}, {"name": "a", "env": [
                {"name": "A", "$patch": "delete"}]}]),
            json!([{"name": "a", "image": "a:1", "args": ["x"],
                    "env": [{"name": "B", "value": "2"}]}]),
        ),
    ] {
        let patch = containers(patch);
        assert_eq!(
            patched(&live, &patch).unwrap(),
            containers(result),
            "{patch}"
        );
    }
}

#[test]
fn an_order_given_with_the_patch_is_kept() {
    let live = containers(json!([{"name": "a"}, {"name": "b"}, {"name": "server"}, {"name": "c"}]));
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "d"}, {"name": "a"}],
        "containers": [{"name": "d", "image": "d:1"}],
    }});
    let result = containers(json!([
        {"name": "server"}, {"name": "c"}, {"name": "b"}, {"name": "d", "image": "d:1"},
        {"name": "a"},
    ]));
    assert_eq!(patched(&live, &patch).unwrap(), result);

    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "a"}],
        "containers": [{"name": "d"}],
    }});
    let problem = patched(&live, &patch).unwrap_err().to_string();
    assert_eq!(
        problem,
        "The order in patch list:\n[map[name:d]]\n doesn't match $setElementOrder list:\n\
         [map[name:a]]\n",
    );
}

#[test]
fn lists_of_scalars_are_sets() {
    let live = finalizers(json!(["a", "b"]));
    for (patch, result) in [
        (json!({"finalizers": ["b", "c"]}), json!(["a", "b", "c"])),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
            json!(["b"]),
        ),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"],
                   "$setElementOrder/finalizers": ["c", "b"]}),
            json!(["c", "b"]),
        ),
        (
            json!({"$setElementOrder/finalizers": ["b", "a"]}),
            json!(["b", "a"]),
        ),
    ] {
        let patch = json!({"metadata": patch});
        let expected = finalizers(result);
        assert_eq!(patched(&live, &patch).unwrap(), expected, "{patch}");
    }
}

#[test]
fn objects_are_merged_replaced_emptied_or_narrowed() {
    let live = json!({"spec": {"strategy": {"type": "Rolling", "rolling": {"max": 1}}}});
    for (patch, result) in [
        (
            json!({"type": "New", "rolling": null}),
            json!({"type": "New"}),
        ),
        (
            json!({"$patch": "replace", "a": 1, "b": null}),
            json!({"a": 1}),
        ),
        (json!({"$patch": "delete"}), json!({})),
        (
            json!({"$retainKeys": ["type"], "type": "New"}),
            json!({"type": "New"}),
        ),
    ] {
        let patch = json!({"spec": {"strategy": patch}});
        let expected = json!({"spec": {"strategy": result}});
        assert_eq!(patched(&live, &patch).unwrap(), expected, "{patch}");
    }
}

#[test]
fn directives_do_not_survive_where_there_is_nothing_to_merge_with() {
    let patch = json!({"spec": {"containers": [
        {"name": "a", "$patch": "delete"}, {"name": "b", "image": null}]}});
    assert_eq!(
        patched(&json!({}), &patch).unwrap(),
        containers(json!([{"name": "b"}]))
    );
}

#[test]
fn broken_patches_are_told_apart() {
    use StrategicError::{Inapplicable, Malformed, Unsupported};
    let live = json!({"spec": {"containers": [{"name": "a"}], "strategy": {"type": "x"}},
                      "metadata": {"finalizers": ["a"]}});
    for (patch, expected) in [
        (json!([]), Malformed("invalid JSON document".into())),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            Inapplicable("map: map[image:x] does not contain declared merge key: name".into()),
        ),
        (
            json!({"spec": {"strategy": {"$patch": "merge"}}}),
            Inapplicable("unknown patch type: merge in map: map[$patch:merge]".into()),
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
            Inapplicable("merging lists cannot yet be specified in the patch".into()),
        ),
        (
            json!({"spec": {"strategy": {"$retainKeys": ["a"], "b": 1}}}),
            Malformed("invalid patch format of retainKeys".into()),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
            Malformed("invalid patch format of primitive list".into()),
        ),
        (
            json!({"metadata": {"finalizers": [1]}}),
            Inapplicable("list element types are not identical: [[a] [1]]".into()),
        ),
        (
            (0..120).fold(json!({}), |inner, _| json!({"a": inner})),
            Unsupported("the patch nests values more than 100 levels deep".into()),
        ),
    ] {
        let mut live = live.clone();
        // Depth counts where the patch meets something; elsewhere it is only copied.
        live["a"] = (0..120).fold(json!({}), |inner, _| json!({"a": inner}))["a"].clone();
        assert_eq!(patched(&live, &patch).unwrap_err(), expected, "{patch}");
    }
}
