use muster_merge::json_patch::{self, PatchError};
use serde_json::{Value, json};

fn patched(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = json_patch::parse(patch.to_string().as_bytes())?;
    let mut document = document.clone();
    json_patch::apply(&mut document, &operations).map(|()| document)
}

#[test]
fn the_examples_of_the_standard_hold() {
    for (document, patch, result) in [
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"baz": "qux", "foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo", "foo": "bar"}),
        ),
        (
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            json!([
                {"op": "test", "path": "/baz", "value": "qux"},
                {"op": "test", "path": "/foo/1", "value": 2},
            ]),
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        ),
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
            json!({"foo": "bar", "child": {"grandchild": {}}}),
        ),
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]),
            json!({"foo": "bar", "baz": "qux"}),
        ),
        (
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            json!({"/": 9, "~1": 10}),
        ),
        (
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
            json!({"foo": ["bar", ["abc", "def"]]}),
        ),
    ] {
        assert_eq!(patched(&document, &patch).unwrap(), result, "{patch}");
    }
}

#[test]
fn the_liberties_of_kubernetes_are_taken() {
    for (document, operation, result) in [
        (
            json!({}),
            json!({"op": "replace", "path": "/a", "value": 1}),
            json!({"a": 1}),
        ),
        (
            json!({}),
            json!({"op": "add", "path": "/a"}),
            json!({"a": null}),
        ),
        (
            json!({}),
            json!({"op": "copy", "from": "/b", "path": "/a"}),
            json!({"a": null}),
        ),
        (
            json!({}),
            json!({"op": "test", "path": "/a", "value": null}),
            json!({}),
        ),
        (
            json!({"a": [1, 2, 3]}),
            json!({"op": "remove", "path": "/a/-1"}),
            json!({"a": [1, 2]}),
        ),
        (
            json!({"a": 1}),
            json!({"op": "replace", "path": "", "value": {}}),
            json!({}),
        ),
    ] {
        assert_eq!(
            patched(&document, &json!([operation])).unwrap(),
            result,
            "{operation}"
        );
    }
}

#[test]
fn failures_are_worded_as_kubernetes_words_them() {
    let document = json!({"a": [1], "b": {}, "s": "x"});
    for (operation, message) in [
        (
            json!({"op": "add", "path": "/x/y", "value": 1}),
            "add operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/s/y", "value": 1}),
            "add operation does not apply: doc is missing path: \"/s/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/a/7", "value": 1}),
            "error in add for path: '/a/7': Unable to access invalid index: 7: invalid index \
             referenced",
        ),
        (
            json!({"op": "add", "path": "/a/z", "value": 1}),
            "error in add for path: '/a/z': value was not a proper array index: 'z': \
             strconv.Atoi: parsing \"z\": invalid syntax",
        ),
        (
            json!({"op": "add"}),
            "add operation failed to decode path: missing value",
        ),
        (
            json!({"op": "remove", "path": "/x"}),
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "remove", "path": "/x/y"}),
            "remove operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            json!({"op": "replace", "path": "/a/3", "value": 1}),
            "replace operation does not apply: doc is missing key: /a/3: missing value",
        ),
        (
            json!({"op": "replace", "path": "/x/y", "value": 1}),
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            json!({"op": "replace", "path": 5}),
            "replace operation failed to decode path: json: cannot unmarshal number into Go value \
             of type string",
        ),
        (
            json!({"op": "move", "from": "/x", "path": "/y"}),
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "move", "path": "/y"}),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            json!({"op": "copy", "from": "/b", "path": "/x/y"}),
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            json!({"op": "test", "path": "/s", "value": "y"}),
            "testing value /s failed: test failed",
        ),
        (
            json!({"op": "test", "path": "/s"}),
            "testing value /s failed: test failed",
        ),
        (json!({"op": "what", "path": "/s"}), "Unexpected kind: what"),
        (json!({"path": "/s"}), "Unexpected kind: unknown"),
    ] {
        let problem = patched(&document, &json!([operation])).unwrap_err();
        assert_eq!(problem.to_string(), message, "{operation}");
        assert_eq!(
            matches!(problem, PatchError::TestFailed(_)),
            message.ends_with("test failed")
        );
    }
}

#[test]
fn what_is_no_patch_is_undecodable() {
    for bytes in ["", "{", "{}", "[1]", "\"x\""] {
        let problem = json_patch::parse(bytes.as_bytes()).unwrap_err();
        assert!(matches!(problem, PatchError::Undecodable(_)), "{bytes}");
    }
    assert_eq!(json_patch::parse(b"null").unwrap(), []);
}

#[test]
fn copies_may_not_grow_without_bound() {
    let mut operations = vec![json!({"op": "add", "path": "/a", "value": ["x".repeat(100)]})];
    operations.extend((0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})));
    let problem = patched(&json!({}), &Value::Array(operations)).unwrap_err();
    assert!(matches!(&problem, PatchError::TooLarge(text) if text.contains("exceeding the limit")));
}

#[test]
fn operations_may_not_nest_values_without_bound() {
    let chain = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    let bottom = "/a".repeat(60);
    let adding = json!([
        {"op": "add", "path": "/x", "value": chain},
        {"op": "add", "path": format!("/x{bottom}/b"), "value": chain},
    ]);
    let moving = json!([
        {"op": "add", "path": "/x", "value": chain},
        {"op": "add", "path": "/y", "value": chain},
        {"op": "move", "from": "/x", "path": format!("/y{bottom}/b")},
    ]);
    for patch in [adding, moving] {
        assert!(matches!(
            patched(&json!({}), &patch),
            Err(PatchError::TooLarge(_))
        ));
    }
}

#[test]
fn shifting_a_long_array_over_and_over_is_refused() {
    let mut operations = vec![json!({"op": "add", "path": "/a", "value": vec![0; 100_000]})];
    operations.extend((0..5_000).map(|_| json!({"op": "add", "path": "/a/0", "value": 0})));
    let problem = patched(&json!({}), &Value::Array(operations)).unwrap_err();
    assert!(matches!(problem, PatchError::TooLarge(_)));
}
