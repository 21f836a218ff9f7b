//! A server that was lost comes back from a backup taken while it ran, and whoever watched it is
//! told to begin anew.

use anyhow::{Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");

fn muster(arguments: &[&str]) -> Result<Output> {
    Ok(Command::new(MUSTER).args(arguments).output()?)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_backup_of_a_running_server_brings_it_back() -> Result<()> {
    let mut server = Muster::start_idle(MUSTER)?;
    let files = tempfile::tempdir()?;
    let file = files.path().join("monday");
    let data = server.data().to_owned();
    let kubectl = Kubectl::new(&server.kubeconfig_path())?;
    kubectl.succeed(&["create", "configmap", "kept", "--from-literal=a=b"])?;

    let made = muster(&["backup", "--data", text(&data), "--to", text(&file)])?;
    ensure!(made.status.success(), "{made:?}");
    assert_eq!(
        std::fs::metadata(&file)?.permissions().mode() & 0o777,
        0o600
    );
    let again = muster(&["backup", "--data", text(&data), "--to", text(&file)])?;
    let complaint = String::from_utf8(again.stderr)?;
    assert!(complaint.contains("exists already"), "{complaint}");
    kubectl.succeed(&["create", "configmap", "late", "--from-literal=a=b"])?;
    let revision = "jsonpath={.metadata.resourceVersion}";
    let late = kubectl.succeed(&["get", "configmap", "late", "-o", revision])?;

    let refused = muster(&["restore", "--from", text(&file), "--data", text(&data)])?;
    let complaint = String::from_utf8(refused.stderr)?;
    assert!(
        complaint.contains("in use by another process"),
        "{complaint}"
    );
    ensure!(server.terminate()?.success());
    let refused = muster(&["restore", "--from", text(&file), "--data", text(&data)])?;
    let complaint = String::from_utf8(refused.stderr)?;
    assert!(complaint.contains("empty place only"), "{complaint}");

    std::fs::remove_file(data.join("state.db"))?;
    let restored = muster(&["restore", "--from", text(&file), "--data", text(&data)])?;
    ensure!(restored.status.success(), "{restored:?}");
    server.restart()?;
    let kubectl = Kubectl::new(&server.kubeconfig_path())?;
    let names = kubectl.succeed(&["get", "configmaps", "-o", "name"])?;
    assert_eq!(names, "configmap/kept\n");
    let watch = format!(
        "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=5&resourceVersion={late}"
    );
    let told = kubectl.succeed(&["get", "--raw", &watch])?;
    assert!(told.contains("\"code\":410"), "{told}");
    kubectl.succeed(&["create", "configmap", "late", "--from-literal=a=c"])?;
    Ok(())
}

#[test]
fn a_password_in_a_url_is_never_shown() -> Result<()> {
    let files = tempfile::tempdir()?;
    let file = files.path().join("monday");
    for url in [
        "postgres://me:hush@127.0.0.1:1/db",
        "postgres://me:hush@[/db",
        "me:hush@localhost/db",
    ] {
        let refused = muster(&["backup", "--postgres", url, "--to", text(&file)])?;
        assert!(!refused.status.success());
        let shown = format!("{refused:?}");
        assert!(!shown.contains("hush"), "{shown}");
    }
    Ok(())
}

#[test]
fn a_backup_is_of_one_place() -> Result<()> {
    for places in [&[][..], &["--data", "a", "--postgres", "postgres://x/y"]] {
        let mut arguments = vec!["backup", "--to", "file"];
        arguments.extend(places);
        let refused = muster(&arguments)?;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    Ok(())
}
