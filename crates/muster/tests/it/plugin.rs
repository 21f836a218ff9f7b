//! The binary as kubectl's plugin, found by the real kubectl; and completion in shells.

use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_muster");

/// Runs kubectl where a directory with links to the binary is in the PATH.
fn run(kubectl: &Kubectl, links: &Path, arguments: &[&str]) -> Result<String> {
    let mut path = OsString::from(links);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = kubectl.command(arguments).env("PATH", path).output()?;
    let said = String::from_utf8(output.stdout)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {said}{complaint}");
    Ok(said)
}

#[test]
fn kubectl_runs_the_binary_under_its_own_name_and_completes_its_lines() -> Result<()> {
    let links = tempfile::tempdir()?;
    for name in ["kubectl-muster", "kubectl_complete-muster"] {
        symlink(BINARY, links.path().join(name))?;
    }
    let (_muster, kubectl) = crate::why::stage()?;
    let run = |arguments: &[&str]| run(&kubectl, links.path(), arguments);

    let help = run(&["muster", "--help"])?;
    assert!(help.contains("Usage: kubectl muster"), "{help}");
    // It asks whom kubectl asks.
    let who = run(&["muster", "why", "CVE-2024-0001"])?;
    assert!(who.contains("shop") && who.contains("web"), "{who}");
    let plan = run(&["muster", "why", "deployment/web", "-n", "shop"])?;
    assert!(plan.contains("openssl"), "{plan}");
    let audited = run(&["muster", "audit", "-n", "shop", "-o", "json"])?;
    assert!(audited.contains("\"kind\""), "{audited}");

    for (words, expected) in [
        (&["muster", "wh"][..], "why\t"),
        (&["muster", "audit", "--fail"], "--fail-on\t"),
        (&["muster", "why", "-o", "y"], "yaml"),
    ] {
        let completed = run(&[&["__complete"], words].concat())?;
        let found = completed.lines().any(|line| line.starts_with(expected));
        assert!(found, "{words:?}: {completed}");
    }
    Ok(())
}

#[test]
fn shells_are_told_how_lines_go_on() -> Result<()> {
    for (shell, sign) in [
        ("bash", "complete -F _muster"),
        ("zsh", "#compdef muster"),
        ("fish", "complete -c muster"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let output = Command::new(BINARY).args(["completions", shell]).output()?;
        let script = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "{shell}");
        assert!(script.contains(sign) && script.contains("why"), "{shell}");
    }
    // What is not a script, a shell would refuse.
    let script = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .spawn()?;
    let script = script.stdout.context("a pipe")?;
    let checked = Command::new("bash").arg("-n").stdin(script).status()?;
    assert!(checked.success());
    Ok(())
}
