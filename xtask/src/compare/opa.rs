//! `cargo xtask compare opa`: every row of `muster-rego`'s conformance suite, asked of the real OPA. The
//! suite holds us to the answers that are written there; this holds those answers to OPA's.

use crate::peers;
use crate::run::root;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the rows are.
const ROWS: &str = "crates/rego/tests/it/conformance.yaml";

/// A row, without what we answer instead.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    /// Whether the module is in the old syntax.
    #[serde(default)]
    old: bool,
    module: String,
    #[serde(default)]
    libraries: Vec<String>,
    /// That of the first row, if there is none.
    input: Option<Value>,
    /// Nothing, if OPA refuses the module or fails.
    answer: Option<Value>,
}

/// Asks all rows, and prints those whose answer is not OPA's.
pub(crate) fn run() -> Result<()> {
    let opa = peers::OPA.ensure()?;
    let text = fs::read_to_string(root().join(ROWS)).with_context(|| format!("reading {ROWS}"))?;
    let rows: Vec<Row> =
        serde_saphyr::from_str(&text).with_context(|| format!("reading {ROWS}"))?;
    let first = rows.first().and_then(|row| row.input.clone());
    let first = first.context("the first row has no input")?;
    let mut different = 0;
    for row in &rows {
        let answer = ask(&opa, row, row.input.as_ref().unwrap_or(&first))
            .with_context(|| format!("asking OPA: {}", row.name))?;
        if answer != row.answer {
            different += 1;
            eprintln!("{}", row.name);
            eprintln!("  OPA      {}", told(&answer));
            eprintln!("  recorded {}", told(&row.answer));
        }
    }
    eprintln!(
        "{} rows, {different} answers that are not OPA's",
        rows.len()
    );
    ensure!(different == 0, "{different} answers are not OPA's");
    Ok(())
}

/// The value of the package, if OPA has one.
fn ask(opa: &Path, row: &Row, input: &Value) -> Result<Option<Value>> {
    let work = tempfile::tempdir()?;
    let mut command = Command::new(opa);
    command.args(["eval", "--format", "json", "--stdin-input"]);
    if row.old {
        command.arg("--v0-compatible");
    }
    for (number, text) in std::iter::once(&row.module)
        .chain(&row.libraries)
        .enumerate()
    {
        let place = work.path().join(format!("{number}.rego"));
        fs::write(&place, text)?;
        command.arg("--data").arg(place);
    }
    let mut running = command
        .arg("data.p")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("running OPA")?;
    if let Some(mut stdin) = running.stdin.take() {
        stdin.write_all(input.to_string().as_bytes())?;
    }
    let output = running.wait_with_output()?;
    let report: Value = serde_json::from_slice(&output.stdout).context("reading OPA's answer")?;
    let value = report.pointer("/result/0/expressions/0/value");
    Ok(value.filter(|_| report.get("errors").is_none()).cloned())
}

fn told(answer: &Option<Value>) -> String {
    let none = || String::from("nothing");
    answer.as_ref().map_or_else(none, Value::to_string)
}
