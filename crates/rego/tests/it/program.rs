//! Loading and asking: libraries, messages, and what a policy says of itself.

use muster_rego::{
    AskError, Limits, LoadError, Metadata, Module, Program, Selector, Subtype, Value,
    check_library, input,
};
use serde_json::json;
use std::time::Duration;

pub(crate) fn load(text: &str, libraries: &[(&str, &str)]) -> Result<Program, LoadError> {
    let libraries: Vec<Module<'_>> = libraries
        .iter()
        .map(|(name, text)| Module { name, text })
        .collect();
    let policy = Module {
        name: "policy.rego",
        text,
    };
    Program::load(policy, &libraries, &[], Limits::default())
}

#[test]
fn only_libraries_that_are_needed_are_read() {
    let broken = ("broken.rego", "package lib.broken\nf(");
    let first = (
        "first.rego",
        "package lib.first\nimport data.lib.second\nf(x) := second.g(x)",
    );
    let second = ("second.rego", "package lib.second\ng(x) = y { y := x + 1 }");
    let text = "package p\nimport data.lib.first\nr := first.f(1)";
    let program = load(text, &[broken, first, second]).unwrap();
    assert_eq!(program.package(), "p");
    assert_eq!(program.rules().collect::<Vec<_>>(), ["r"]);
    let asked = program.ask(input(&json!({})), &["nothing", "r"]).unwrap();
    assert_eq!(asked, [Value::Undefined, Value::from(2_i64)]);
    let text = "package p\nimport data.lib.broken\nr := broken.x";
    let told = load(text, &[broken, first]).unwrap_err().to_string();
    assert!(told.starts_with("broken.rego: line 2, column "), "{told}");
}

#[test]
fn a_library_of_the_same_package_is_read_for_the_rules_that_are_asked_for() {
    let policy = Module {
        name: "policy.rego",
        text: "package p\ndeny_root contains \"no\" if input.a",
    };
    let exception = Module {
        name: "exception.rego",
        text: "package p\nexception contains [\"root\"] if input.a",
    };
    let other = Module {
        name: "other.rego",
        text: "package q\nexception contains [\"root\"] if input.a",
    };
    let excepted = input(&json!([["root"]]));
    for (libraries, roots, expected) in [
        (&[exception][..], &["exception"][..], true),
        (&[exception, other], &["exception", "deny"], true),
        (&[other], &["exception"], false),
        (&[exception], &[], false),
        (&[], &["exception"], false),
    ] {
        let program = Program::load(policy, libraries, roots, Limits::default()).unwrap();
        assert_eq!(program.rules().collect::<Vec<_>>(), ["deny_root"]);
        let asked = program
            .ask(input(&json!({"a": 1})), &["exception"])
            .unwrap();
        let items: Vec<Value> = match &asked[..] {
            [Value::Set(items)] => items.iter().cloned().collect(),
            _ => Vec::new(),
        };
        assert_eq!(
            Value::from(items) == excepted,
            expected,
            "{libraries:?} {roots:?}"
        );
    }
}

#[test]
fn an_import_that_nobody_has_is_named_if_it_is_used() {
    let text = "package p\nimport data.lib.x\nr := 1";
    let program = load(text, &[]).unwrap();
    assert_eq!(program.missing().collect::<Vec<_>>(), ["data.lib.x"]);
    for body in ["r := x.y", "r := x.f(1)", "r if { not x }"] {
        let text = format!("package p\nimport data.lib.x\n{body}");
        let told = load(&text, &[]).unwrap_err().to_string();
        let expected = "policy.rego: `data.lib.x` cannot be imported: no library has it";
        assert_eq!(told, expected, "{body}");
    }
    // An empty package says that there is nothing.
    let text = "package p\nimport data.k8s\nr := k8s.version\nq := 1";
    let program = load(text, &[("k8s", "package k8s")]).unwrap();
    let asked = program.ask(input(&json!({})), &["r", "q"]).unwrap();
    assert_eq!(asked, [Value::Undefined, Value::from(1_i64)]);
}

#[test]
fn messages_name_the_module_and_the_place() {
    let library = ("lib.rego", "package lib\nf(x) := nothing(x)");
    let deep = (
        "lib.rego",
        "package lib\n\nf(x) := x if {\n  not g(x.y)\n}\ng(x) := rand.intn(x, 1)",
    );
    for (text, library, expected) in [
        (
            "package p\nimport data.lib\nr := lib.f(1)",
            library,
            "lib.rego: line 2, column 9: there is no function `nothing`",
        ),
        (
            "package p\nimport data.lib\nr := lib.f(1)",
            deep,
            "lib.rego: line 6, column 9: `rand.intn` cannot be used: the same object must be judged the same again",
        ),
        (
            "package p\nimport data.lib\nr := lib.h(1)",
            ("lib.rego", "package lib\nf(x) := x"),
            "policy.rego: line 3, column 6: there is no function `lib.h`",
        ),
        ("package p\nr := ", library, "policy.rego: line 2, column "),
        (
            "package p\nimport data.lib\ng(x) := lib.f(x)\nr := g(1)",
            ("lib.rego", "package lib\nimport data.p\nf(x) := p.g(x)"),
            "calls itself",
        ),
        (
            "package p\nf(x) := y if y := g(x) with g as f\ng(x) := x\nr := f(1)",
            library,
            "the function `f` calls itself",
        ),
    ] {
        let told = load(text, &[library]).unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
    let failing = load("package p\nr := 1 if input.a\n\nr := 2 if input.b", &[]).unwrap();
    let told = failing.ask(input(&json!({"a": 1, "b": 1})), &["r"]);
    let told = told.unwrap_err().to_string();
    assert!(told.starts_with("policy.rego: line "), "{told}");
}

#[test]
fn a_library_is_checked_by_itself() {
    let check = |text: &str| check_library(&Module { name: "l", text });
    for (text, expected) in [
        ("package lib\nimport data.other\nf(x) := other.g(x)", None),
        (
            "package lib\nf(x) := g(x)",
            Some("there is no function `g`"),
        ),
        ("package lib\nf(x) := f(x)", Some("calls itself")),
        ("package lib\nf(x", Some("l: line 2")),
        ("f(x) := 1", Some("line 1")),
    ] {
        let told = check(text).err().map(|error| error.to_string());
        match (&told, expected) {
            (None, None) => {}
            (Some(told), Some(part)) if told.contains(part) => {}
            _ => panic!("{text}: {told:?}"),
        }
    }
}

#[test]
fn the_comment_before_the_package_says_what_a_policy_is() {
    let text = "# Somebody's\n\n# METADATA\n# title: No root\n# description: |\n#   Two\n#   lines\n# custom:\n#   id: KSV-0012\n#   aliases:\n#   - AVD-KSV-0012\n#   severity: MEDIUM\n#   recommended_action: Say no.\n#   kinds: Pod,Job\n#   input:\n#     selector:\n#     - type: kubernetes\n#       subtypes:\n#       - kind: pod\n#       - group: apps\n#         version: v1\n#         namespace: kube\npackage p\nr := 1";
    let subtype = |group: &str, version: &str, kind: &str, namespace: &str| {
        let one = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Subtype {
            group: one(group),
            version: one(version),
            kind: one(kind),
            namespace: one(namespace),
        }
    };
    let one = |text: &str| Some(text.to_owned());
    let expected = Metadata {
        id: one("KSV-0012"),
        aliases: vec!["AVD-KSV-0012".into()],
        title: one("No root"),
        description: one("Two\nlines\n"),
        severity: one("MEDIUM"),
        remediation: one("Say no."),
        kinds: one("Pod,Job"),
        selectors: vec![Selector {
            kind_of_input: "kubernetes".into(),
            subtypes: vec![
                subtype("", "", "pod", ""),
                subtype("apps", "v1", "", "kube"),
            ],
        }],
        ..Metadata::default()
    };
    assert_eq!(load(text, &[]).unwrap().metadata(), &expected);
    let rules = "package p\n__rego_metadata__ := {\"id\": \"A\", \"type\": \"T\", \"recommended_actions\": \"Do\", \"url\": \"u\"}\n__rego_input__ := {\"combine\": false, \"selector\": [{\"type\": \"kubernetes\"}]}\nr := 1";
    let expected = Metadata {
        id: one("A"),
        category: one("T"),
        remediation: one("Do"),
        url: one("u"),
        selectors: vec![Selector {
            kind_of_input: "kubernetes".into(),
            subtypes: Vec::new(),
        }],
        ..Metadata::default()
    };
    assert_eq!(load(rules, &[]).unwrap().metadata(), &expected);
    assert_eq!(
        load("package p\nr := 1", &[]).unwrap().metadata(),
        &Metadata::default()
    );
    let told = load(
        "\n# METADATA\n# title: a\n# custom: [\npackage p\nr := 1",
        &[],
    );
    let told = told.unwrap_err().to_string();
    assert!(
        told.starts_with("policy.rego: line ") && told.contains("METADATA: "),
        "{told}"
    );
}

#[test]
fn results_of_trivys_checks_are_messages_with_a_cause() {
    let text = "package p\nr := result.new(\"m\", input)\nq := isManaged(input)";
    let program = load(text, &[]).unwrap();
    for (object, expected) in [
        (
            json!({"name": "n", "image": "i", "x": 1}),
            json!({"msg": "m", "cause": {"name": "n", "image": "i"}}),
        ),
        (json!({"name": 1}), json!({"msg": "m"})),
        (json!([1]), json!({"msg": "m"})),
    ] {
        let asked = program.ask(input(&object), &["r", "q"]).unwrap();
        assert_eq!(asked, [input(&expected), Value::from(true)]);
    }
}

#[test]
fn all_rules_of_an_asking_share_its_time() {
    let loops =
        "xs := numbers.range(1, 100000)\nr if { some i in xs; some j in xs; i == j + 200000 }";
    let text = format!("package p\n{loops}");
    let policy = Module {
        name: "policy.rego",
        text: &text,
    };
    let time = Duration::from_millis(300);
    let limits = Limits {
        time,
        ..Limits::default()
    };
    let program = Program::load(policy, &[], &[], limits).unwrap();
    let start = std::time::Instant::now();
    let asked = program.ask(input(&json!({})), &["r", "r", "r"]);
    assert_eq!(asked, Err(AskError::Time(time)));
    // Nothing stops it by itself; a busy machine may need much longer than the time that it has.
    assert!(start.elapsed() < Duration::from_secs(120));
}
