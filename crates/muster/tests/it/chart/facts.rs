//! What the chart says of Muster is true of this Muster: definitions, versions, metrics, documentation.

use super::{MUSTER, file, objects, read, text};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use serde_json::Value;
use std::process::Command;

/// The files of definitions, and the groups in each.
const DEFINITIONS: [(&str, &[&str]); 3] = [
    (
        "crds/sbomscanner.kubewarden.io.yaml",
        &["sbomscanner.kubewarden.io"],
    ),
    ("files/crds/policies.yaml", &["policies.kubewarden.io"]),
    (
        "files/crds/reports.yaml",
        &["wgpolicyk8s.io", "openreports.io", "aquasecurity.github.io"],
    ),
];

fn definitions(arguments: &[&str]) -> Result<String> {
    let output = Command::new(MUSTER).arg("crds").args(arguments).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_definitions_are_those_of_the_binary() -> Result<()> {
    let mut carried = 0;
    for (path, groups) in DEFINITIONS {
        let path = format!("charts/muster/{path}");
        let mut fresh = String::new();
        for group in groups {
            fresh.push_str(&definitions(&["--group", group])?);
        }
        carried += objects(&fresh)?.len();
        let commands: Vec<String> = (groups.iter())
            .map(|group| format!("muster crds --group {group}"))
            .collect();
        ensure!(
            read(&path)? == fresh,
            "{path} is old; make it anew: ({}) > {path}",
            commands.join("; ")
        );
    }
    assert_eq!(carried, objects(&definitions(&[])?)?.len());
    Ok(())
}

#[test]
fn the_versions_are_that_of_the_binary() -> Result<()> {
    let chart: Value = serde_saphyr::from_str(&read("charts/muster/Chart.yaml")?)?;
    for field in ["/version", "/appVersion"] {
        assert_eq!(text(&chart, field), env!("CARGO_PKG_VERSION"), "{field}");
    }
    Ok(())
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() -> Result<()> {
    let dashboard: Value = serde_json::from_str(&read("charts/muster/files/dashboard.json")?)?;
    let told = read("docs/observability.md")?;
    let metric = Regex::new(r"\b(muster|apiserver)_[a-z_]+")?;
    let panels = dashboard["panels"].as_array().context("panels")?;
    let mut shown = 0;
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            for name in metric.find_iter(text(target, "/expr")) {
                let name = name.as_str().trim_end_matches("_bucket");
                ensure!(
                    told.contains(&format!("`{name}`")),
                    "{name} is not documented"
                );
                shown += 1;
            }
        }
    }
    assert!(shown > 20, "{shown}");
    Ok(())
}

/// The values that have no line in a README, neither by themselves nor by what they consist of.
fn undocumented(readme: &str, name: &str, value: &Value, unsaid: &mut Vec<String>) {
    if readme.contains(&format!("| `{name}` |")) {
        return;
    }
    match value.as_object().filter(|parts| !parts.is_empty()) {
        None => unsaid.push(name.to_owned()),
        Some(parts) => parts.iter().for_each(|(part, value)| {
            let name = format!("{name}.{part}");
            undocumented(readme, name.trim_start_matches('.'), value, unsaid);
        }),
    }
}

/// Of every value there is a word: a comment where it stands, and a line in the chart's README.
#[test]
fn every_value_is_documented() -> Result<()> {
    let text = read("charts/muster/values.yaml")?;
    let values: Value = serde_saphyr::from_str(&text)?;
    let readme = read("charts/muster/README.md")?;
    let mut unsaid = Vec::new();
    undocumented(&readme, "", &values, &mut unsaid);
    ensure!(unsaid.is_empty(), "the README has no {unsaid:?}");
    let known = Regex::new(r"(?m)^\| `([a-zA-Z.]+)` \|")?;
    for name in known.captures_iter(&readme) {
        let pointer = format!("/{}", name[1].replace('.', "/"));
        ensure!(
            values.pointer(&pointer).is_some(),
            "there is no value {}",
            &name[1]
        );
    }
    Ok(())
}

/// A bill of ourselves, made by ourselves.
#[test]
fn muster_writes_its_own_bill_of_materials() -> Result<()> {
    let source = tempfile::tempdir()?;
    std::fs::copy(file("Cargo.lock"), source.path().join("Cargo.lock"))?;
    for (form, listed) in [("spdx", "/packages"), ("cyclonedx", "/components")] {
        let output = Command::new(MUSTER)
            .args(["sbom", "--offline", "--cache", "none", "-o", form])
            .arg(source.path())
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        let bill: Value = serde_json::from_slice(&output.stdout)?;
        let listed = bill.pointer(listed).and_then(Value::as_array);
        let listed = listed.context("packages")?;
        let locked = read("Cargo.lock")?;
        let outside = locked.matches("\nsource = \"registry+").count();
        ensure!(
            outside > 300 && listed.len() >= outside,
            "{} of {outside}",
            listed.len()
        );
        for name in ["kube", "tokio", "rustls", "wasmtime"] {
            let is_listed = listed.iter().any(|package| package["name"] == name);
            ensure!(is_listed, "{form}: no {name}");
        }
    }
    Ok(())
}
