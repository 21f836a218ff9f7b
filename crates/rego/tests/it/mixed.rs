//! Modules that are neither v1 nor v0: they mix both, and are refused with the error of v1.

use crate::program::load;
use muster_rego::{Module, check_library, input};
use serde_json::json;

const EXEMPT: &str = "exempt if { input.metadata.labels.exempt == \"yes\" }\n";
const DENY: &str = "deny[msg] { not exempt; input.privileged; msg := \"privileged\" }\n";

#[test]
fn a_module_that_mixes_both_syntaxes_is_refused_with_the_error_of_v1() {
    let needs_if = "`if` keyword is required before rule body";
    for (rules, place, why) in [
        (format!("{EXEMPT}{DENY}"), "line 3, column 11", needs_if),
        (
            format!("exempt\nif {{ input.x }}\n{DENY}"),
            "line 4, column 11",
            needs_if,
        ),
        (
            format!("f(\"x\") if input.x\n{DENY}"),
            "line 3, column 11",
            needs_if,
        ),
        (
            format!("deny contains 1 {{ input.x }}\n{DENY}"),
            "line 2, column 17",
            needs_if,
        ),
        (
            format!("x := 1 if {{ input.x }}\n{DENY}"),
            "line 3, column 11",
            needs_if,
        ),
        (
            format!("exempt\n{DENY}"),
            "line 2, column 1",
            "rule must have a body or assignment",
        ),
    ] {
        let text = format!("package p\n{rules}");
        let error = load(&text, &[]).unwrap_err().to_string();
        assert!(error.starts_with("policy.rego: line "), "{text}: {error}");
        let expected = format!("policy.rego: {place}: {why}");
        assert_eq!(error, expected, "{text}");
    }
}

#[test]
fn a_library_that_mixes_both_syntaxes_is_refused() {
    let text = format!("package lib.a\n{EXEMPT}{DENY}");
    let policy = "package p\nimport data.lib.a\nr if a.exempt";
    let expected = "lib.rego: line 3, column 11: `if` keyword is required before rule body";
    let error = load(policy, &[("lib.rego", &text)]).unwrap_err();
    assert_eq!(error.to_string(), expected);
    let library = Module {
        name: "lib.rego",
        text: &text,
    };
    assert_eq!(check_library(&library).unwrap_err().to_string(), expected);
}

#[test]
fn a_valid_module_of_v1_is_not_read_as_v0_because_of_a_function_head() {
    let text =
        "package p\nis_node({\"kind\": \"Node\"})\ndeny contains \"a Node\" if is_node(input)";
    let program = load(text, &[]).unwrap();
    for (kind, expected) in [("Node", json!(["a Node"])), ("Pod", json!([]))] {
        let asked = program.ask(input(&json!({"kind": kind})), &["deny"]);
        let asked = serde_json::to_value(asked.unwrap()).unwrap();
        assert_eq!(asked, json!([expected]));
    }
}

#[test]
fn a_library_may_have_function_heads_without_a_body() {
    let library = ("lib.rego", "package lib.a\nis_root(\"root\")\nis_root(0)");
    let policy =
        "package p\nimport data.lib.a\nr := [x | some x in [0, 1, \"root\"]; a.is_root(x)]";
    let program = load(policy, &[library]).unwrap();
    let asked = program.ask(input(&json!({})), &["r"]).unwrap();
    assert_eq!(serde_json::to_value(asked).unwrap(), json!([[0, "root"]]));
}
