//! The chart, as an administrator meets it: rendered by the real Helm, taken by a real kube-apiserver,
//! and its roles really started from what it says.

mod facts;
mod found;
pub(crate) mod nodes;
mod recipe;
mod refused;
mod rendered;
mod rights;
mod sandbox;
mod started;
mod webhooks;

use anyhow::{Context, Result};
use muster_testkit::helm::Helm;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
/// The namespace of the tests' releases.
const NAMESPACE: &str = "muster";

/// What the chart is installed with, in examples that are written for people: none is the default.
const EXAMPLES: [Option<&str>; 4] = [
    None,
    Some("air-gap"),
    Some("external-services"),
    Some("minimal"),
];

/// A file of the checkout.
fn file(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(file(path)).with_context(|| format!("reading {path}"))
}

fn chart() -> String {
    file("charts/muster").display().to_string()
}

/// The arguments with which an example is chosen.
fn values(example: Option<&str>) -> Vec<String> {
    let path = |name| file(&format!("charts/muster/examples/{name}.yaml"));
    let given = example.map(|name| ["--values".into(), path(name).display().to_string()]);
    given.into_iter().flatten().collect()
}

/// What a chart says in a namespace, with these values.
fn template(namespace: &str, values: &[String]) -> Result<String> {
    let chart = chart();
    let mut arguments = vec!["template", "muster", &chart, "--namespace", namespace];
    arguments.extend(values.iter().map(String::as_str));
    Helm::new()?.succeed(&arguments)
}

/// The objects of some YAML.
fn objects(text: &str) -> Result<Vec<Value>> {
    let documents = serde_saphyr::from_multiple::<Value>(text).context("reading YAML")?;
    Ok(documents.into_iter().filter(Value::is_object).collect())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// What an object is called in a message: its kind and its name.
fn called(object: &Value) -> String {
    format!(
        "{} {}",
        text(object, "/kind"),
        text(object, "/metadata/name")
    )
}
