//! `muster audit` as people and pipelines run it: what it reads, what it says, and with which exit
//! code.

mod checks;
mod clusters;
mod examples;
mod forms;
mod manifests;
mod policies;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// One person's machine.
struct Desk {
    directory: TempDir,
    /// Whether the checks that come with Muster are left as they are; else they are off.
    is_checking: bool,
}

/// How the command ended, and what it said.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    result: String,
    talk: String,
}

impl Desk {
    /// With files in the working directory, and no checks but those that somebody writes.
    fn with(files: &[(&str, &str)]) -> Result<Desk> {
        let desk = Desk::checking(files)?;
        Ok(Desk {
            is_checking: false,
            ..desk
        })
    }

    /// With files in the working directory.
    fn checking(files: &[(&str, &str)]) -> Result<Desk> {
        let directory = tempfile::tempdir()?;
        let desk = Desk {
            directory,
            is_checking: true,
        };
        for (name, text) in files {
            desk.write(name, text)?;
        }
        Ok(desk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("work").join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().context("a directory")?)?;
        Ok(std::fs::write(path, text)?)
    }

    fn run(&self, arguments: &[&str]) -> Result<Ended> {
        self.run_with(arguments, "")
    }

    /// Runs it with something on standard input.
    fn run_with(&self, arguments: &[&str], input: &str) -> Result<Ended> {
        let home = self.directory.path().join("home");
        std::fs::create_dir_all(&home)?;
        std::fs::create_dir_all(self.path(""))?;
        let builtin = (!self.is_checking).then_some(("MUSTER_BUILTIN_POLICIES", "off"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_muster"))
            .arg("audit")
            .args(arguments)
            .env("HOME", &home)
            .env("MUSTER_POLICY_CACHE", home.join("policies"))
            .env_remove("KUBECONFIG")
            .envs(builtin)
            .current_dir(self.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("running muster")?;
        let mut stdin = child.stdin.take().context("standard input")?;
        // Whoever does not read it is not written to.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output()?;
        Ok(Ended {
            code: output.status.code(),
            result: String::from_utf8(output.stdout)?,
            talk: String::from_utf8(output.stderr)?,
        })
    }

    /// The reports of a run that must end well.
    fn reports(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let ended = self.run(&[arguments, &["-o", "json"]].concat())?;
        ensure!(ended.code == Some(0), "{arguments:?}: {ended:?}");
        ended.reports()
    }
}

impl Ended {
    fn reports(&self) -> Result<Vec<Value>> {
        let list: Value =
            serde_json::from_str(&self.result).with_context(|| format!("reading {self:?}"))?;
        ensure!(
            list["kind"] == "List" && list["apiVersion"] == "v1",
            "{list}"
        );
        Ok(list["items"].as_array().context("items")?.clone())
    }
}

/// What reports say, a line each: `namespace/kind/name policy result message`, sorted.
fn lines(reports: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let scope = &report["scope"];
        let object = ["namespace", "kind", "name"]
            .map(|field| text(&scope[field]))
            .join("/");
        for line in report["results"].as_array().into_iter().flatten() {
            let said = ["policy", "result", "message"].map(|field| text(&line[field]));
            lines.push(format!("{object} {}", said.join(" ")));
        }
    }
    lines.sort();
    lines
}

/// A policy in CEL about pods.
fn policy(name: &str, expression: &str, message: &str, more: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "module": "builtin:cel", "mutating": false,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"]}],
            "settings": {"validations": [{"expression": expression, "message": message}]},
        },
    });
    for (pointer, value) in more.as_object().into_iter().flatten() {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let parent = policy.pointer_mut(parent).unwrap();
        parent[field] = value.clone();
    }
    policy
}

/// No pod is called `bad`.
fn good_names(more: Value) -> String {
    let expression = "object.metadata.name != 'bad'";
    policy("names", expression, "a bad name", more).to_string()
}

fn pod(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: main\n    image: app:1\n"
    )
}

/// The policies that come with Muster.
fn example_policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies")
}
