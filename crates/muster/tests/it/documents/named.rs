//! Nothing that the binary has is left out of the documentation: kinds, commands, metrics.

use super::markdown::Page;
use super::root;
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_muster");

#[test]
fn every_kind_that_is_served_has_its_example() -> Result<()> {
    let muster = Muster::start_idle(BINARY)?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let served = kubectl.succeed(&["api-resources", "--categories=muster", "--no-headers"])?;
    let served: BTreeSet<&str> = served
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    ensure!(served.len() >= 20, "{served:?}");
    let page = Page::read("docs/kinds.md")?;
    let headings: BTreeSet<String> = page.headings().into_iter().collect();
    let mut shown = BTreeSet::new();
    for block in page.blocks()? {
        let tree: Value = serde_saphyr::from_str(&block.text())?;
        shown.insert(tree["kind"].as_str().context("a kind")?.to_owned());
    }
    for kind in served {
        ensure!(
            headings.contains(kind),
            "{kind} has no heading in docs/kinds.md"
        );
        ensure!(
            shown.contains(kind),
            "{kind} has no example in docs/kinds.md"
        );
    }
    Ok(())
}

/// The commands of `--help`.
fn commands() -> Result<Vec<String>> {
    let help = Command::new(BINARY).arg("--help").output()?;
    let help = String::from_utf8(help.stdout)?;
    let (_, listed) = help.split_once("Commands:\n").context("commands")?;
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // What is longer than a line goes on further in.
    let names = listed.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    Ok(names
        .map(str::to_owned)
        .filter(|name| name != "help")
        .collect())
}

#[test]
fn every_command_is_on_some_page() -> Result<()> {
    let pages = Page::all()?;
    let commands = commands()?;
    ensure!(commands.len() >= 12, "{commands:?}");
    for command in commands {
        let called = format!("muster {command}");
        let is_told = |page: &Page| page.path.starts_with("docs") && page.says(&called);
        ensure!(pages.iter().any(is_told), "no page in docs says `{called}`");
    }
    Ok(())
}

/// The names of metrics in a text of Prometheus' form, as they are asked for.
fn told(metrics: &str) -> BTreeSet<String> {
    let types = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.filter_map(|line| line.split_once(' '));
    names
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        })
        .collect()
}

/// The names of metrics in a text of ours.
fn written(text: &str) -> BTreeSet<String> {
    let words = text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let of_ours = |word: &&str| word.starts_with("muster_") || word.starts_with("apiserver_");
    words.filter(of_ours).map(str::to_owned).collect()
}

/// Whether some code registers a metric: its name there is without what all have in front, and without the
/// unit.
fn is_registered(code: &[String], name: &str) -> bool {
    let bare = [
        "muster_config_audit_",
        "muster_audit_",
        "muster_",
        "apiserver_",
    ]
    .iter()
    .find_map(|before| name.strip_prefix(before))
    .unwrap_or(name);
    let bare = ["_total", "_seconds", "_bytes"]
        .iter()
        .fold(bare, |bare, unit| bare.strip_suffix(unit).unwrap_or(bare));
    let quoted = format!("\"{bare}\"");
    code.iter().any(|source| source.contains(&quoted))
}

#[test]
fn every_metric_is_told_of_and_there_are_no_others() -> Result<()> {
    let muster = Muster::start_told(BINARY, &[], &[("MUSTER_CONFIG_AUDIT", "on")])?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let real = told(&kubectl.succeed(&["get", "--raw", "/metrics"])?);
    ensure!(real.len() > 15, "{real:?}");
    let read = |path: &str| fs::read_to_string(root().join(path)).map(|text| written(&text));
    let documented = read("docs/observability.md")?;
    let untold: Vec<_> = real.difference(&documented).collect();
    ensure!(untold.is_empty(), "docs/observability.md has no {untold:?}");
    // What nothing was counted of yet is not told; then the code that would tell it is looked for.
    let code = super::sources()?;
    let is_invented = |name: &&String| !real.contains(*name) && !is_registered(&code, name);
    let invented: Vec<_> = documented.iter().filter(is_invented).collect();
    ensure!(
        invented.is_empty(),
        "docs/observability.md has {invented:?}"
    );
    let asked = read("docs/operations.md")?;
    ensure!(asked.len() > 8, "{asked:?}");
    let unknown: Vec<_> = asked.difference(&documented).collect();
    ensure!(
        unknown.is_empty(),
        "docs/operations.md asks for {unknown:?}"
    );
    Ok(())
}
