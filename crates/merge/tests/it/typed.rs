use muster_kind::Schema;
use muster_kind::schema::{any, boolean, int32, list, map, object, string};
use muster_merge::{Set, compare, fields_v1, merge, remove, to_set};
use serde_json::{Value, json};

/// One field for every way in which values are told apart.
fn schema() -> Schema {
    let item = object()
        .field("name", string())
        .field("value", int32())
        .field("tags", list(string()).set());
    let port = object()
        .field("port", int32())
        .field("protocol", string().default("TCP"))
        .field("name", string());
    object()
        .field("text", string())
        .field("flag", boolean())
        .field("struct", object().field("a", int32()).field("b", int32()))
        .field("map", map(string()))
        .field("whole", map(string()).atomic())
        .field("args", list(string()))
        .field("set", list(string()).set())
        .field("items", list(item).keyed_by(["name"]))
        .field("ports", list(port).keyed_by(["port", "protocol"]))
        .field("free", any())
}

fn lines(set: &Set) -> Vec<String> {
    let mut lines: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    lines.sort();
    lines
}

#[test]
fn a_value_owns_its_leaves_its_items_and_its_free_keys() {
    for (value, expected) in [
        (json!({"text": "x", "flag": true}), vec![".flag", ".text"]),
        (json!({"struct": {"a": 1}}), vec![".struct.a"]),
        (json!({"struct": {}}), vec![".struct"]),
        (json!({"struct": null}), vec![".struct"]),
        (json!({"map": {"k": "v"}}), vec![".map.k"]),
        (json!({"whole": {"k": "v"}}), vec![".whole"]),
        (json!({"args": ["a", "b"]}), vec![".args"]),
        (
            json!({"set": ["b", "a"]}),
            vec![".set[=\"a\"]", ".set[=\"b\"]"],
        ),
        (json!({"set": []}), vec![]),
        (
            json!({"items": [{"name": "x", "value": 1}]}),
            vec![
                ".items[name=\"x\"]",
                ".items[name=\"x\"].name",
                ".items[name=\"x\"].value",
            ],
        ),
        (
            json!({"ports": [{"port": 80}]}),
            vec![
                ".ports[port=80,protocol=\"TCP\"]",
                ".ports[port=80,protocol=\"TCP\"].port",
            ],
        ),
        (
            json!({"free": {"a": {"b": [1, {"c": 2}]}}}),
            vec![".free.a", ".free.a.b"],
        ),
        (
            json!({"items": [{"name": "x", "value": 1}, {"name": "x", "value": 2}]}),
            vec![".items[name=\"x\"]"],
        ),
    ] {
        assert_eq!(lines(&to_set(&value, &schema())), expected, "{value}");
    }
}

#[test]
fn comparison_names_what_came_changed_and_went() {
    type Expected = (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>);
    let cases: Vec<(Value, Value, Expected)> = vec![
        (
            json!({"text": "a"}),
            json!({"text": "a"}),
            (vec![], vec![], vec![]),
        ),
        (
            json!({"text": "a"}),
            json!({"text": "b"}),
            (vec![], vec![".text"], vec![]),
        ),
        (
            json!({"struct": {"a": 1}}),
            json!({"struct": {"b": 1}}),
            (vec![".struct.b"], vec![], vec![".struct.a"]),
        ),
        (
            json!({}),
            json!({"map": {"k": "v"}}),
            (vec![".map", ".map.k"], vec![], vec![]),
        ),
        (
            json!({"whole": {"a": "1"}}),
            json!({"whole": {"b": "1"}}),
            (vec![], vec![".whole"], vec![]),
        ),
        (
            json!({"args": ["a"]}),
            json!({"args": ["b"]}),
            (vec![], vec![".args"], vec![]),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["c", "b"]}),
            (vec![".set[=\"c\"]"], vec![], vec![".set[=\"a\"]"]),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["b", "a"]}),
            (vec![], vec![], vec![]),
        ),
        (
            json!({"items": [{"name": "x", "value": 1}, {"name": "y"}]}),
            json!({"items": [{"name": "x", "value": 2}]}),
            (
                vec![],
                vec![".items[name=\"x\"].value"],
                vec![".items[name=\"y\"]", ".items[name=\"y\"].name"],
            ),
        ),
        (
            json!({"ports": [{"port": 80}]}),
            json!({"ports": [{"port": 80, "protocol": "TCP"}]}),
            (
                vec![".ports[port=80,protocol=\"TCP\"].protocol"],
                vec![],
                vec![],
            ),
        ),
        (
            json!({"free": {"a": 1}}),
            json!({"free": {"a": {"b": 1}}}),
            (vec![".free.a.b"], vec![".free.a"], vec![]),
        ),
        (
            json!({"struct": null}),
            json!({"struct": {}}),
            (vec![], vec![".struct"], vec![]),
        ),
        (
            json!({"text": null}),
            json!({}),
            (vec![], vec![], vec![".text"]),
        ),
        (
            json!({"free": 1}),
            json!({"free": 1.0}),
            (vec![], vec![], vec![]),
        ),
        (
            json!({"items": [{"name": "x", "value": 1}]}),
            json!({"items": [{"name": "x", "value": 1}, {"name": "x", "value": 2}]}),
            (
                vec![".items[name=\"x\"]"],
                vec![],
                vec![
                    ".items[name=\"x\"]",
                    ".items[name=\"x\"].name",
                    ".items[name=\"x\"].value",
                ],
            ),
        ),
    ];
    for (old, new, (added, modified, removed)) in cases {
        let found = compare(&old, &new, &schema());
        assert_eq!(lines(&found.added), added, "added: {old} -> {new}");
        assert_eq!(lines(&found.modified), modified, "modified: {old} -> {new}");
        assert_eq!(lines(&found.removed), removed, "removed: {old} -> {new}");
    }
}

#[test]
fn merging_prefers_the_applied_and_keeps_the_rest() {
    for (live, applied, expected) in [
        (
            json!({"text": "a", "flag": true}),
            json!({"text": "b"}),
            json!({"text": "b", "flag": true}),
        ),
        (
            json!({"struct": {"a": 1}}),
            json!({"struct": {"b": 2}}),
            json!({"struct": {"a": 1, "b": 2}}),
        ),
        (
            json!({"whole": {"a": "1"}}),
            json!({"whole": {"b": "2"}}),
            json!({"whole": {"b": "2"}}),
        ),
        (
            json!({"args": ["a", "b"]}),
            json!({"args": ["c"]}),
            json!({"args": ["c"]}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"set": ["c", "a"]}),
            json!({"set": ["c", "a", "b"]}),
        ),
        (
            json!({"items": [{"name": "x", "value": 1, "tags": ["a"]}, {"name": "y"}]}),
            json!({"items": [{"name": "x", "tags": ["b"]}, {"name": "z"}]}),
            json!({"items": [{"name": "x", "value": 1, "tags": ["a", "b"]}, {"name": "y"}, {"name": "z"}]}),
        ),
        (
            json!({"ports": [{"port": 80, "name": "web"}]}),
            json!({"ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]}),
            json!({"ports": [{"port": 80, "protocol": "UDP"},
                             {"port": 80, "protocol": "TCP", "name": "web"}]}),
        ),
        (
            json!({"free": {"a": {"x": 1}}}),
            json!({"free": {"a": [1]}}),
            json!({"free": {"a": [1]}}),
        ),
        (
            json!({"free": [1, 2]}),
            json!({"free": [3]}),
            json!({"free": [3]}),
        ),
        (
            json!({"struct": {"a": 1}}),
            json!({"struct": null}),
            json!({"struct": {"a": 1}}),
        ),
        (
            json!({"text": "a"}),
            json!({"text": null}),
            json!({"text": null}),
        ),
        (
            json!({"map": {}}),
            json!({"map": {"a": "b"}}),
            json!({"map": {"a": "b"}}),
        ),
        (
            json!({"items": [{"name": "x", "value": 1}, {"name": "x", "value": 2}, {"name": "y"}]}),
            json!({"items": [{"name": "x", "value": 3}]}),
            json!({"items": [{"name": "x", "value": 3}, {"name": "y"}]}),
        ),
    ] {
        assert_eq!(
            merge(&live, &applied, &schema()),
            expected,
            "{live} + {applied}"
        );
    }
}

#[test]
fn the_order_of_merged_items_follows_the_applied_among_the_live() {
    for (live, applied, expected) in [
        ("abc", "c", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "xb", "axbc"),
        ("abc", "bx", "abcx"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("abcd", "dcba", "dcba"),
        ("axbyc", "cba", "xycba"),
    ] {
        let set = |letters: &str| {
            let items: Vec<String> = letters.chars().map(String::from).collect();
            json!({"set": items})
        };
        assert_eq!(
            merge(&set(live), &set(applied), &schema()),
            set(expected),
            "{live} + {applied}"
        );
    }
}

#[test]
fn removal_takes_fields_items_and_what_they_leave_empty() {
    for (value, fields, expected) in [
        (
            json!({"text": "a", "flag": true}),
            json!({"f:text": {}}),
            json!({"flag": true}),
        ),
        (
            json!({"struct": {"a": 1}, "flag": true}),
            json!({"f:struct": {"f:a": {}}}),
            json!({"flag": true}),
        ),
        (
            json!({"set": ["a", "b"]}),
            json!({"f:set": {"v:\"a\"": {}}}),
            json!({"set": ["b"]}),
        ),
        (
            json!({"items": [{"name": "x", "value": 1}, {"name": "y"}]}),
            json!({"f:items": {"k:{\"name\":\"x\"}": {"f:value": {}}, "k:{\"name\":\"y\"}": {}}}),
            json!({"items": [{"name": "x"}]}),
        ),
        (
            json!({"args": ["a"], "flag": true}),
            json!({"f:args": {"i:0": {}}}),
            json!({"flag": true}),
        ),
        (
            json!({"text": "a"}),
            json!({"f:what": {}}),
            json!({"text": "a"}),
        ),
    ] {
        let mut rest = value.clone();
        remove(&mut rest, &fields_v1::decode(&fields).unwrap(), &schema());
        assert_eq!(rest, expected, "{value} - {fields}");
    }
}
