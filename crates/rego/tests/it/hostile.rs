//! Modules that are made to do harm: each is refused, or answered within its limits.

use muster_rego::{AskError, Limits, Module, Program, input};
use serde_json::json;
use std::time::{Duration, Instant};

fn judge(text: &str) -> Option<Result<Vec<muster_rego::Value>, AskError>> {
    let policy = Module { name: "", text };
    let program = Program::load(policy, &[], &[], Limits::default()).ok()?;
    Some(program.ask(input(&json!({"a": "x"})), &["r"]))
}

#[test]
fn whatever_a_module_is_it_ends() {
    let deep: String = (0..200)
        .map(|i| format!("f{i}(x) := f{}(x) + 1\n", i + 1))
        .collect();
    let withs: String = (0..300).map(|i| format!(" with data.a{i} as 1")).collect();
    let arguments: Vec<String> = (0..300).map(|i| format!("input.a{i}")).collect();
    let nested: String = (0..12)
        .map(|_| "[1 | not f(input.a) ; some x in input.b; x == ")
        .collect();
    for text in [
        String::new(),
        "package".into(),
        "package p\nr := \"".into(),
        "package p\nr if not".into(),
        "package p\nr if { not f(\"é\", `\n`)".into(),
        "(".repeat(100_000),
        format!(
            "package p\nr := {}1{}",
            "[".repeat(4_000),
            "]".repeat(4_000)
        ),
        format!("package p\nr := 1{}", " + 1".repeat(5_000)),
        format!("package p\nr if not 1{}", " + input.a".repeat(5_000)),
        format!("package p\nr if not input{}", ".a".repeat(20_000)),
        format!("package p\nr if not input{}", "[input.a]".repeat(5_000)),
        format!(
            "package p\nr if not count([{}]) == 1{withs}",
            arguments.join(", ")
        ),
        format!("package p\nf(x) if x\nr := {nested}1{}", "]".repeat(12)),
        format!("package p\n{deep}f200(x) := x\nr := f0(1)"),
        format!("# METADATA\n# a: {}\npackage p\nr := 1", "[".repeat(10_000)),
        "# METADATA\n# a: &a [x, x]\n# b: &b [*a, *a]\n# c: &c [*b, *b]\npackage p\nr := 1".into(),
        "package p\nr := yaml.unmarshal(\"a: &a [x, x]\\nb: &b [*a, *a]\\nc: [*b, *b]\")".into(),
        "package p\nr := regex.match(\"(a{1000}){1000}\", input.a)".into(),
        "package p\nr := sprintf(\"%999999999d %.999999999f\", [1, 1.5])".into(),
        "package p\nr := sprintf(\"%[99999999999]d\", [1])".into(),
        "package p\na := b\nb := a\nr := a".into(),
        format!(
            "package p\n{}\nr := a0",
            (0..500)
                .map(|i| format!("a{i} := a{}\n", i + 1))
                .collect::<String>()
        ),
    ] {
        let start = Instant::now();
        let _ = judge(&text);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(120), "{took:?}: {text:.80}");
    }
}

#[test]
fn what_functions_make_is_counted() {
    let chain = |first: &str, next: &str| {
        let next = |i: usize| next.replace('@', &format!("s{i}"));
        let all: String = (0..40)
            .map(|i| format!("s{} := {}\n", i + 1, next(i)))
            .collect();
        format!("package p\ns0 := {first}\n{all}r := count(s40)")
    };
    for text in [
        chain("\"abcdefgh\"", "concat(\"\", [@, @])"),
        chain("\"abcdefgh\"", "strings.replace_n({\"a\": \"aa\", \"b\": \"bb\"}, @)"),
        chain("[1]", "array.concat(@, @)"),
        "package p\nr := count(regex.split(\"\", concat(\"\", [\"abcdefgh\" | some i in numbers.range(1, 200000)])))".into(),
    ] {
        let asked = judge(&text).unwrap();
        assert_eq!(asked, Err(AskError::Memory(32)), "{text:.80}");
    }
}
