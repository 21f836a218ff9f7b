//! Modules that could take the process with them, or never give it back: each is judged in a process of
//! its own, which has to answer, with little memory and before a deadline.

use muster_rego::{AskError, Limits, Module, Program, input};
use serde_json::json;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const ROW: &str = "MUSTER_TEST_ROW";
/// What the process has for everything, in KiB; stacks that are set aside are part of it.
const MEMORY: &str = "3000000";
const DEADLINE: Duration = Duration::from_secs(120);

/// What becomes of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It is not loaded.
    Refused,
    /// It makes too much.
    Memory,
    /// It has an answer, whatever it is.
    Answered,
}

/// `s0`, and forty more of which each is made of the one before, which is `@`.
fn chain(first: &str, next: &str, last: &str) -> String {
    let mut text = format!("package p\ns0 := {first}\n");
    for i in 0..40 {
        let next = next.replace('@', &format!("s{i}"));
        let _ = writeln!(text, "s{} := {next}", i + 1);
    }
    format!("{text}r := {last}\n")
}

/// Statements in one body, in the same way.
fn body(first: &str, next: &str, last: &str) -> String {
    let mut text = format!("package p\nr := {last} if {{\n  s0 := {first}\n");
    for i in 0..40 {
        let next = next.replace("@@", &format!("s{}", i + 1));
        let _ = writeln!(text, "  {}", next.replace('@', &format!("s{i}")));
    }
    format!("{text}}}\n")
}

fn nested(function: &str, count: usize, of: &str) -> String {
    format!(
        "{}{of}{}",
        format!("{function}(").repeat(count),
        ")".repeat(count)
    )
}

fn rows() -> Vec<(&'static str, Fate, String)> {
    let deep = |first: &str, head: &str| {
        format!(
            "package p\n{first}\nf2(x) := {}\nf3(x) := {}\n{head}",
            nested("f1", 60, "x"),
            nested("f2", 60, "x"),
        )
    };
    let brackets = format!("{}x{}", "[".repeat(15), "]".repeat(15));
    let arguments: String = (0..40)
        .map(|i| format!("f{i}(x) := f{}([x, x])\n", i + 1))
        .collect();
    let heads: String = (0..40)
        .map(|i| format!("s{}[k] := s{i} if some k in [1, 2]\n", i + 1))
        .collect();
    let keys: String = (0..40)
        .map(|i| format!("s{} contains [y, y] if some y in s{i}\n", i + 1))
        .collect();
    let patch =
        "json.patch(@, [{\"op\": \"add\", \"path\": array.concat(p@, [\"a\"]), \"value\": @}])";
    let mut patches = String::from("package p\ns0 := {\"a\": {}}\nps0 := [\"a\"]\n");
    for i in 0..40 {
        let next = patch.replace('@', &format!("s{i}"));
        let _ = writeln!(
            patches,
            "s{n} := {next}\nps{n} := array.concat(ps{i}, array.concat([\"a\"], ps{i}))",
            n = i + 1
        );
    }
    patches.push_str("r := count(s40)\n");
    let copies: Vec<String> = (0..40)
        .map(|i| format!("{{\"op\": \"copy\", \"from\": [], \"path\": [\"c{i}\"]}}"))
        .collect();
    let slices = |call: &str| {
        format!(
            "package p\ns := concat(\"\", [\"abcdefgh\" | some i in numbers.range(1, 100000)])\na := numbers.range(1, 100000)\nr := count([x | some i in a; x := {call}])"
        )
    };
    let any = |function: &str| {
        let list = |letter: &str| format!("[\"{letter}\" | some i in numbers.range(1, 150000)]");
        format!("package p\nr := {function}({}, {})", list("a"), list("b"))
    };
    let squared = (0..9).fold(String::from("a"), |text, _| format!("({text} * {text})"));
    let doubled = "[@, @]";
    vec![
        ("functions that nest what they get", Fate::Memory, deep(&format!("f1(x) := {brackets}"), "r contains f3(1)")),
        ("the same with `=`", Fate::Memory, deep(&format!("f1(x) := y if y = {brackets}"), "r contains f3(1)")),
        ("the same by a comprehension", Fate::Memory, deep("f1(x) := [y | y := x]", "r contains f3(1)")),
        ("the same where nobody looks at it", Fate::Memory, deep(&format!("f1(x) := {brackets}"), "r if not f3(1)")),
        ("patches of patches", Fate::Memory, patches),
        ("a patch that copies all of it", Fate::Memory, format!("package p\nr := count(json.patch({{\"a\": \"x\"}}, [{}]))", copies.join(", "))),
        ("a path as long as a text", Fate::Memory, "package p\nr := json.remove({\"a\": 1}, [concat(\"/\", [\"a\" | some i in numbers.range(1, 400000)])])".into()),
        ("a path as long as an array", Fate::Memory, "package p\nr := json.filter({\"a\": 1}, [[\"a\" | some i in numbers.range(1, 400000)]])".into()),
        ("numbers that are squared", Fate::Answered, chain("12345678901234567890", "@ * @", "s40 > 1")),
        ("numbers that are squared at once", Fate::Answered, format!("package p\nr := x > 1 if {{ a := 999999999999999999; x := {squared} }}")),
        ("a product", Fate::Answered, "package p\nr := product([999999999999999999 | some i in numbers.range(1, 600000)]) > 1".into()),
        ("a number with a large exponent", Fate::Refused, "package p\nr := 1e2147483647".into()),
        ("a number with very many digits", Fate::Refused, format!("package p\nr := {}", "9".repeat(60_000))),
        ("a text that is such a number", Fate::Answered, "package p\nr := [json.unmarshal(\"[1e2147483647]\")]\nq := 1".into()),
        ("and is it valid", Fate::Answered, "package p\nr := json.is_valid(\"1e2147483647\")".into()),
        ("and by `to_number`", Fate::Answered, "package p\nr := to_number(\"1e2147483647\")".into()),
        ("and with a unit", Fate::Answered, "package p\nr := units.parse(\"1e2147483640K\")\nq := units.parse_bytes(\"1e2147483640K\")".into()),
        ("comparing what is doubled", Fate::Memory, format!("{}\nt := s40", chain("[input.a]", doubled, "s40 == [s40, s40]"))),
        ("telling what is doubled", Fate::Memory, chain("[input.a]", doubled, "s40")),
        ("doubled in one body", Fate::Memory, body("[input.a]", "@@ := [@, @]", "s40")),
        ("doubled in one body with `=`", Fate::Refused, body("[input.a]", "@@ = [@, @]", "s40")),
        ("doubled by iterating", Fate::Memory, body("[input.a]", "some @@ in [[@, @]]", "s40")),
        ("doubled by indexing", Fate::Refused, body("[input.a]", "@@ := [[@, @]][0]", "s40")),
        ("doubled as an object", Fate::Memory, chain("{\"a\": input.a}", "{\"a\": @, \"b\": @}", "count(s40)")),
        ("doubled by arguments", Fate::Memory, format!("package p\n{arguments}f40(x) := count(x)\nr := f0(input.a)")),
        ("doubled by the heads of rules", Fate::Memory, format!("package p\ns0 := input.a\n{heads}r := startswith(s40, \"a\")")),
        ("doubled by the keys of rules", Fate::Memory, format!("package p\ns0 := {{input.a}}\n{keys}r := count(s40)")),
        ("doubled in what replaces the input", Fate::Memory, format!("package p\n{}t40 := count(input)\nr := t0", (0..40).map(|i| format!("t{i} := x if x := t{} with input as [input, input]\n", i + 1)).collect::<String>())),
        ("multiplied by comprehensions", Fate::Memory, format!("package p\nn := numbers.range(1, 1000)\ns0 := input.a\n{}r := {{1: v | some v in [[1, s8], [2, s8]]}}", (0..8).map(|i| format!("s{} := [s{i} | some x in n]\n", i + 1)).collect::<String>())),
        ("walking what is doubled", Fate::Memory, chain("[input.a]", doubled, "count([p | walk(s40, [p, _])])")),
        ("walking much", Fate::Memory, "package p\nx := [[i, [i, [i]]] | some i in numbers.range(1, 60000)]\nr := count([p | some i in numbers.range(1, 50); walk(x, [p, _])])".into()),
        ("parts of a text", Fate::Memory, slices("substring(s, i, -1)")),
        ("texts that are trimmed", Fate::Memory, slices("trim_right(s, sprintf(\"%d\", [i]))")),
        ("texts that are turned", Fate::Memory, slices("strings.reverse(s)")),
        ("parts of an array", Fate::Memory, slices("array.slice(a, i, 100000)")),
        ("arrays that are turned", Fate::Memory, slices("array.reverse(a)")),
        ("objects that are put together", Fate::Memory, "package p\na := {sprintf(\"%d\", [i]): i | some i in numbers.range(1, 20000)}\nr := count([x | some i in numbers.range(1, 100000); x := object.union(a, {\"a\": i})])".into()),
        ("sets that are put together", Fate::Memory, "package p\na := {i | some i in numbers.range(1, 100000)}\nr := count([x | some i in numbers.range(1, 100000); x := a | {i}])".into()),
        ("two long lists of prefixes", Fate::Memory, any("strings.any_prefix_match")),
        ("two long lists of suffixes", Fate::Memory, any("strings.any_suffix_match")),
        ("a range that is too long to count", Fate::Answered, "package p\nr := count(numbers.range_step(-9223372036854775807, 9223372036854775807, 100000000000000))".into()),
        ("windows of nothing", Fate::Answered, "package p\nr := strings.count(\"abc\", \"\")\nq := object.subset([1], [])".into()),
    ]
}

fn fate(text: &str) -> Option<Result<Vec<muster_rego::Value>, AskError>> {
    let policy = Module { name: "", text };
    // Memory is not a matter of how fast the machine is.
    let limits = Limits {
        time: Duration::from_secs(30),
        ..Limits::default()
    };
    let program = Program::load(policy, &[], &[], limits).ok()?;
    Some(program.ask(input(&json!({"a": "x"})), &["r", "q", "t"]))
}

/// One of the processes; as a test of its own it has nothing to do.
#[test]
fn the_process_that_judges() {
    let Ok(row) = std::env::var(ROW) else {
        return;
    };
    let rows = rows();
    let (name, expected, text) = &rows[row.parse::<usize>().unwrap()];
    // As a worker of an asynchronous program has it.
    let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let text = text.clone();
    let asked = small.spawn(move || fate(&text)).unwrap().join().unwrap();
    let met = matches!(
        (expected, &asked),
        (Fate::Refused, None)
            | (Fate::Answered, Some(Ok(_)))
            | (Fate::Memory, Some(Err(AskError::Memory(_))))
    );
    let told = match &asked {
        None => "refused".to_owned(),
        Some(Ok(values)) => values
            .iter()
            .map(|value| muster_rego::show(value, 40) + " ")
            .collect(),
        Some(Err(error)) => error.to_string(),
    };
    assert!(met, "{name}: {told}, not {expected:?}");
}

#[test]
fn whatever_a_module_does_the_process_lives_on() {
    let mut wrong = Vec::new();
    for (row, (name, ..)) in rows().iter().enumerate() {
        let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "apart::the_process_that_judges", "--nocapture"])
            .env(ROW, row.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It is over when it has nothing more to tell.
        let (end, ended) = channel();
        let stderr = child.stderr.take().unwrap();
        let reading = std::thread::spawn(move || {
            let _ = end.send(std::io::read_to_string(stderr).unwrap_or_default());
        });
        let told = ended.recv_timeout(DEADLINE);
        let _ = child.kill();
        let status = child.wait().unwrap();
        reading.join().unwrap();
        let (told, is_late) = (told.clone().unwrap_or_default(), told.is_err());
        let told: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        let told = told.get(..told.len().min(4)).unwrap_or_default().join(" ");
        match (is_late, status.success()) {
            (true, _) => wrong.push(format!("{name}: does not end: {told}")),
            (false, false) => wrong.push(format!("{name}: {status}: {told}")),
            (false, true) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
