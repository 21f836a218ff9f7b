//! Every manifest on a page is one that a server accepts.

use super::markdown::Page;
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::Value;
use std::collections::BTreeSet;

/// Kinds of others that a page shows and `muster up` does not serve. They are only read.
const SERVED_BY_OTHERS: [&str; 2] = ["PrometheusRule", "APIService"];

/// The documents of a page that are whole Kubernetes objects: with the line of their block, the tree
/// and the text.
fn manifests(page: &Page) -> Result<Vec<(usize, Value, String)>> {
    let mut found = Vec::new();
    for block in page.blocks()? {
        if block.language != "yaml" {
            continue;
        }
        for text in block.text().split("---\n") {
            let tree: Value = serde_saphyr::from_str(text)
                .with_context(|| format!("{}: no YAML", page.place(block.line)))?;
            if tree["apiVersion"].is_string() && tree["kind"].is_string() {
                found.push((block.line, tree, text.to_owned()));
            }
        }
    }
    Ok(found)
}

#[test]
fn every_manifest_is_accepted_by_a_server() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let mut namespaces = BTreeSet::from(["default".to_owned(), "muster".into()]);
    let (mut faults, mut accepted) = (Vec::new(), 0);
    for page in Page::all()? {
        let mut wanted = Vec::new();
        for (line, tree, text) in manifests(&page)? {
            let kind = tree["kind"].as_str().context("a kind")?;
            if SERVED_BY_OTHERS.contains(&kind) {
                continue;
            }
            if let Some(namespace) = tree["metadata"]["namespace"].as_str()
                && namespaces.insert(namespace.to_owned())
            {
                kubectl.succeed(&["create", "namespace", namespace])?;
            }
            wanted.push((line, text));
        }
        if wanted.is_empty() {
            continue;
        }
        // All at once where all is well, since kubectl takes a while to start.
        let apply = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        let texts: Vec<&str> = wanted.iter().map(|(_, text)| text.as_str()).collect();
        let outcome = kubectl.run(&apply, &texts.join("\n---\n"))?;
        let applied = outcome.stdout.matches("(server dry run)").count();
        if outcome.status.success() && applied == wanted.len() {
            accepted += applied;
            continue;
        }
        for (line, text) in &wanted {
            let outcome = kubectl.run(&apply, text)?;
            if !outcome.status.success() {
                faults.push(format!("{}: {}", page.place(*line), outcome.stderr));
            }
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    ensure!(accepted > 25, "only {accepted} manifests were found");
    Ok(())
}
