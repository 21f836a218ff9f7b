use crate::apply::schema;
use muster_merge::{
    ApplyRequest, Managed, Path, PathElement, Set, UpdateRequest, apply, compare, fields_v1,
    json_patch, keep_times, merge, merge_patch, remove, strategic, to_set, update, validate,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, of names the schema knows more often than not.
fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-8i32..8).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "spec",
            "metadata",
            "managedFields",
            "items",
            "name",
            "value",
            "set",
            "map",
            "whole",
            "free",
            "$patch",
            "$retainKeys",
            "$setElementOrder/items",
            "uid",
            "annotations",
            "$deleteFromPrimitiveList/set",
            "operation",
            "fieldsV1",
            "f:spec",
            ".",
            "k:{}",
        ])
        .prop_map(String::from),
        "[a-c]{1,2}",
    ]
}

/// A configuration the schema accepts.
fn spec() -> impl Strategy<Value = Value> {
    let letters = || prop::collection::btree_set("[a-d]", 0..4);
    let pairs = || prop::collection::btree_map("[a-d]", "[x-z]", 0..4);
    let items = prop::collection::btree_map("[a-d]", prop::option::of("[x-z]"), 0..4);
    (
        prop::option::of(0..3),
        letters(),
        pairs(),
        pairs(),
        items,
        any_value(),
    )
        .prop_map(|(replicas, set, map, whole, items, free)| {
            let items: Vec<Value> = items
                .into_iter()
                .map(|(name, value)| match value {
                    Some(value) => json!({"name": name, "value": value}),
                    None => json!({"name": name}),
                })
                .collect();
            let mut spec =
                json!({"set": set, "map": map, "whole": whole, "items": items, "free": free});
            if let (Some(replicas), Some(fields)) = (replicas, spec.as_object_mut()) {
                fields.insert("replicas".into(), json!(replicas));
            }
            spec
        })
}

fn configuration(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "uid": "1"}, "spec": spec})
}

fn request<'a>(
    live: Option<&'a Value>,
    applied: &'a Value,
    schema: &'a muster_kind::Schema,
    reset: &'a Set,
    manager: &'a str,
) -> ApplyRequest<'a> {
    ApplyRequest {
        live,
        applied,
        schema,
        manager,
        force: true,
        api_version: "v1",
        subresource: None,
        now: "now",
        reset,
    }
}

fn any_set() -> impl Strategy<Value = Set> {
    let element = prop_oneof![
        "[a-c]{1,2}".prop_map(PathElement::Field),
        any_value().prop_map(|value| PathElement::key(vec![("name".into(), value)])),
        any_value().prop_map(PathElement::Value),
        any::<i64>().prop_map(PathElement::Index),
    ];
    let path = prop::collection::vec(element, 0..4).prop_map(Path);
    prop::collection::vec(path, 0..8).prop_map(Set::from_iter)
}

/// The merge patch that leads from one document to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in to {
        match from.get(name) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(name.clone(), difference(before, value))),
            None => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_patch_leads_where_it_was_made_to_and_stays_there(from in any_value(), to in any_value()) {
        let (from, to) = (without_nulls(from), without_nulls(to));
        let patch = difference(&from, &to);
        let mut document = from;
        for _ in 0..2 {
            merge_patch::apply(&mut document, &patch).unwrap();
            prop_assert_eq!(&document, &to);
        }
    }

    #[test]
    fn fields_read_back_as_they_were_written(set in any_set()) {
        let value = fields_v1::encode(&set);
        prop_assert_eq!(&fields_v1::decode(&value).unwrap(), &set);
        let text: Value = serde_json::from_str(&fields_v1::to_json(&set)).unwrap();
        prop_assert_eq!(text, value);
    }

    #[test]
    fn sets_obey_the_laws_of_sets(left in any_set(), right in any_set()) {
        let both = left.intersection(&right);
        let rest = left.clone().difference(&right);
        prop_assert_eq!(both.clone().union(rest.clone()), left.clone());
        prop_assert!(rest.intersection(&right).is_empty());
        prop_assert_eq!(left.clone().union(right.clone()), right.clone().union(left.clone()));
        for path in left.paths() {
            prop_assert!(left.contains(&path));
            prop_assert_eq!(both.contains(&path), right.contains(&path));
        }
    }

    #[test]
    fn applying_twice_is_applying_once(before in spec(), spec in spec()) {
        let (schema, reset) = (schema(), Set::default());
        let first = configuration(&before);
        let live = apply(request(None, &first, &schema, &reset, "one")).unwrap().object;
        let applied = configuration(&spec);
        let once = apply(request(Some(&live), &applied, &schema, &reset, "two")).unwrap().object;
        for (manager, live) in [("one", &live), ("two", &live), ("two", &once)] {
            let first = apply(request(Some(live), &applied, &schema, &reset, manager)).unwrap();
            let again =
                apply(request(Some(&first.object), &applied, &schema, &reset, manager)).unwrap();
            prop_assert_eq!(&again.object, &first.object);
            prop_assert!(!again.changed);
        }
    }

    #[test]
    fn one_applier_alone_gets_what_it_applied_last(before in spec(), spec in spec()) {
        let (schema, reset) = (schema(), Set::default());
        let (first, second) = (configuration(&without_nulls(before)), configuration(&without_nulls(spec)));
        let live = apply(request(None, &first, &schema, &reset, "one")).unwrap().object;
        let after = apply(request(Some(&live), &second, &schema, &reset, "one")).unwrap().object;
        let owned = to_set(&after["spec"], schema.property("spec").unwrap());
        let applied = to_set(&second["spec"], schema.property("spec").unwrap());
        prop_assert_eq!(owned.to_string(), applied.to_string());
    }

    #[test]
    fn merged_values_hold_all_that_was_applied(live in spec(), applied in spec()) {
        let schema = schema();
        let (live, applied) = (configuration(&live), configuration(&applied));
        let merged = merge(&live, &applied, &schema);
        prop_assert!(compare(&merged, &merge(&merged, &applied, &schema), &schema).is_same());
    }

    #[test]
    fn what_changed_is_the_difference_of_what_is_owned(old in spec(), new in spec()) {
        let schema = schema();
        let (old, new) = (configuration(&old), configuration(&new));
        let forth = compare(&old, &new, &schema);
        let back = compare(&new, &old, &schema);
        prop_assert_eq!(forth.added, back.removed);
        prop_assert_eq!(forth.modified, back.modified);
    }

    #[test]
    fn nothing_panics_on_any_input(
        first in any_value(), second in any_value(), third in any_value(), set in any_set(),
    ) {
        let schema = schema();
        let wrap = |value: &Value| json!({"apiVersion": "v1", "metadata": value, "spec": value});
        for (live, new) in [(first.clone(), second.clone()), (wrap(&first), wrap(&second))] {
            let _ = validate(&new, &schema);
            let _ = Managed::of(&new);
            let _ = fields_v1::decode(&new);
            let _ = merge(&live, &new, &schema);
            let _ = compare(&live, &new, &schema);
            remove(&mut new.clone(), &set, &schema);
            remove(&mut new.clone(), &to_set(&live, &schema), &schema);
            let _ = merge_patch::apply(&mut live.clone(), &new);
            let _ = strategic::apply(&mut live.clone(), &new, &schema);
            keep_times(&live, &mut new.clone());
            for manager in ["kubectl", "one"] {
                let _ = apply(request(Some(&live), &new, &schema, &set, manager));
                let _ = update(UpdateRequest {
                    live: Some(&live), new: new.clone(), schema: &schema, manager,
                    api_version: "v1", subresource: None, now: "now", reset: &set,
                });
            }
        }
        let operations = json!([
            {"op": "add", "path": "/a/-1", "value": second}, {"op": "move", "from": "/a", "path": "/b/c"},
            {"op": third, "path": second, "from": first},
        ]);
        for operation in operations.as_array().unwrap() {
            let patch = json!([operation]).to_string();
            let operations = json_patch::parse(patch.as_bytes()).unwrap();
            let _ = json_patch::apply(&mut first.clone(), &operations);
        }
    }

    #[test]
    fn no_patch_of_any_paths_panics(document in any_value(), steps in prop::collection::vec(
        ("add|remove|replace|move|copy|test", "(/[abc0-3-]{0,2}){0,4}", "(/[abc0-3-]{0,2}){0,4}", any_value()), 1..6,
    )) {
        for (op, path, from, value) in steps {
            let patch = json!([{"op": op, "path": path, "from": from, "value": value}]).to_string();
            let operations = json_patch::parse(patch.as_bytes()).unwrap();
            let _ = json_patch::apply(&mut document.clone(), &operations);
        }
    }
}
