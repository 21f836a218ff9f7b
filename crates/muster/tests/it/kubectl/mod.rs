//! Real kubectl against `muster up`, a command at a time, as a user would type it. All tests share
//! one server; each has a namespace of its own, so that they run beside each other.

mod apply;
mod change;
mod create;
mod delete;
mod describe;
mod discovery;
mod dry_run;
mod get;
mod server_side_apply;
mod wait;
mod watch;
mod workload;

use anyhow::{Result, ensure};
use muster_testkit::kubectl::{Kubectl, Outcome};
use muster_testkit::muster::Muster;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The server and its kubectl, whose cached discovery all tests share.
struct Stage {
    kubectl: Kubectl,
    _muster: Muster,
}

/// The stage in use. It is held weakly, so that the last test to leave turns off the lights.
static STAGE: Mutex<Weak<Stage>> = Mutex::new(Weak::new());

fn stage() -> Result<Arc<Stage>> {
    let mut shared = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stage) = shared.upgrade() {
        return Ok(stage);
    }
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let stage = Arc::new(Stage {
        kubectl: Kubectl::new(&muster.kubeconfig_path())?,
        _muster: muster,
    });
    *shared = Arc::downgrade(&stage);
    Ok(stage)
}

/// What one test sees: a namespace, and a kubectl that looks at it.
struct Scene {
    stage: Arc<Stage>,
    namespace: String,
    files: tempfile::TempDir,
}

impl Scene {
    /// Makes the namespace.
    fn new(namespace: &str) -> Result<Scene> {
        let scene = Scene {
            stage: stage()?,
            namespace: namespace.into(),
            files: tempfile::tempdir()?,
        };
        let made = scene.run(&format!("create namespace {namespace}"))?;
        ensure!(made == format!("namespace/{namespace} created\n"), "{made}");
        Ok(scene)
    }

    /// Runs a command line, which must succeed, and returns what it prints.
    fn run(&self, line: &str) -> Result<String> {
        self.feed(line, "")
    }

    /// As [`Scene::run`], with something on the standard input.
    fn feed(&self, line: &str, stdin: &str) -> Result<String> {
        let words = self.words(line);
        self.stage.kubectl.succeed_with(&borrowed(&words), stdin)
    }

    /// Runs a command line, which must fail, and returns what it complains about.
    fn refused(&self, line: &str, stdin: &str) -> Result<String> {
        let words = self.words(line);
        self.stage.kubectl.fail(&borrowed(&words), stdin)
    }

    /// Runs a command line to whatever end.
    fn outcome(&self, line: &str, stdin: &str) -> Result<Outcome> {
        let words = self.words(line);
        self.stage.kubectl.run(&borrowed(&words), stdin)
    }

    /// A command line that is yet to be started.
    fn command(&self, line: &str) -> Command {
        let words = self.words(line);
        self.stage.kubectl.command(&borrowed(&words))
    }

    /// Applies a manifest.
    fn apply(&self, manifest: &str) -> Result<String> {
        self.feed("apply -f -", manifest)
    }

    /// A file with this text, for flags that take one.
    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.files.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn words(&self, line: &str) -> Vec<String> {
        let mut words = vec!["--namespace".to_string(), self.namespace.clone()];
        words.extend(split(line));
        words
    }
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Splits as a shell does, as far as spaces and single quotes go.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// A table as its rows of cells. Cells are told apart by the runs of spaces between them, so an
/// empty cell is not seen.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let cells = line.split("   ").map(str::trim);
            cells.filter(|cell| !cell.is_empty()).collect()
        })
        .collect()
}

/// A small registry of ours.
fn registry(name: &str, uri: &str) -> String {
    format!(
        "apiVersion: sbomscanner.kubewarden.io/v1alpha1\n\
         kind: Registry\n\
         metadata:\n  name: {name}\n  labels: {{team: {name}}}\n\
         spec:\n  uri: {uri}\n  catalogType: NoCatalog\n  scanInterval: 24h\n  \
         repositories: [{{name: app, matchOperator: Or}}]\n"
    )
}

/// A small ConfigMap; `data` is in YAML's flow style.
fn config_map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata: {data}\n")
}
