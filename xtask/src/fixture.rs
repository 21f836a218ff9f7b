//! `cargo xtask fixture`: what a version of Muster stores, kept for the versions that come after it. The
//! tests of upgrades open it (crates/muster/tests/it/upgrade). It holds a data directory and a dump of
//! PostgreSQL with the same content: the demonstration, scanned and audited, and an object of every other kind.

use crate::run::root;
use anyhow::{Context, Result, bail, ensure};
use muster_testkit::etcd::Durability;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::process::Directory;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Objects of the kinds that the demonstration has none of.
const OBJECTS: &str = "xtask/fixture/objects.yaml";
/// What is in a data directory; keys are made again, compiled policies too.
const KEPT: [&str; 4] = ["state.db", "queue.db", "layers.db", "vulnerabilities"];
const WORKLOADS: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/workloadscanreports";

/// Builds the fixture of a binary, by default of the one that was built last.
pub(crate) fn build(binary: Option<&str>) -> Result<()> {
    let built = root().join("target/release/muster");
    let binary = binary.map_or(built, PathBuf::from);
    let binary = binary
        .canonicalize()
        .with_context(|| format!("{}: build it first", binary.display()))?;
    let version = version(&binary)?;
    let place = root().join("crates/muster/tests/fixtures").join(&version);
    fs::create_dir_all(&place)?;
    let directory = Directory::new("fixture")?;

    let demo = directory.join("demo");
    succeed(
        Command::new(&binary)
            .args(["demo", "--listen", "127.0.0.1:0", "--until-ready", "--data"])
            .arg(&demo),
    )?;
    let idle = ["--scanning", "off", "--audit", "off"];
    let mut muster = Muster::start_on(&binary, &idle, |data| {
        KEPT.iter().try_for_each(|name| {
            let mut copy = Command::new("cp");
            succeed(copy.arg("-r").arg(demo.join(name)).arg(data))
        })
    })?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    complete(&kubectl)?;
    let expected = expected(&kubectl)?;
    let text = serde_json::to_string_pretty(&expected)?;
    fs::write(place.join("expected.json"), text + "\n")?;
    ensure!(muster.terminate()?.success(), "muster did not end in order");

    let archive = place.join("up.tar.gz");
    let mut tar = Command::new("tar");
    tar.env("GZIP", "-9").arg("-czf").arg(&archive);
    tar.arg("-C").arg(muster.data()).args(KEPT);
    succeed(&mut tar)?;
    dump(
        &binary,
        muster.data(),
        &directory,
        &place.join("postgres.sql.gz"),
    )?;
    eprintln!("{}", place.display());
    Ok(())
}

fn version(binary: &Path) -> Result<String> {
    let output = Command::new(binary).arg("--version").output()?;
    let text = String::from_utf8(output.stdout)?;
    let version = text.split_whitespace().nth(1);
    Ok(version.context("the version of the binary")?.to_owned())
}

/// Creates what the demonstration lacks.
fn complete(kubectl: &Kubectl) -> Result<()> {
    let text = fs::read_to_string(root().join(OBJECTS))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    for object in objects {
        kubectl.succeed_with(&["create", "-f", "-"], &object.to_string())?;
        let Some(status) = object.get("status") else {
            continue;
        };
        let name = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = name("/kind").context("a kind")?;
        let patch = json!({"status": status}).to_string();
        let mut arguments = vec!["patch", kind, name("/metadata/name").context("a name")?];
        if let Some(namespace) = name("/metadata/namespace") {
            arguments.extend(["-n", namespace]);
        }
        arguments.extend(["--subresource=status", "--type=merge", "-p", &patch]);
        kubectl.succeed(&arguments)?;
    }
    Ok(())
}

/// What is served, by the path of each resource: the identity of every object, and of workloads' reports all
/// that is computed, shortened. A kind without an object is an error.
fn expected(kubectl: &Kubectl) -> Result<BTreeMap<String, Vec<Value>>> {
    let get = |path: &str| -> Result<Value> {
        Ok(serde_json::from_str(
            &kubectl.succeed(&["get", "--raw", path])?,
        )?)
    };
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = get("/apis")?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        let version = &group["preferredVersion"]["groupVersion"];
        versions.push(format!("/apis/{}", version.as_str().context("a version")?));
    }
    let mut expected = BTreeMap::new();
    let mut missing = Vec::new();
    for version in versions {
        let resources = get(&version)?;
        for resource in resources["resources"].as_array().into_iter().flatten() {
            let is_listed = resource["verbs"]
                .as_array()
                .is_some_and(|verbs| verbs.contains(&json!("list")));
            if !is_listed {
                continue;
            }
            let path = format!("{version}/{}", resource["name"].as_str().context("a name")?);
            let list = get(&path)?;
            let items = list["items"].as_array().context("items")?;
            if items.is_empty() {
                missing.push(path.clone());
            }
            let is_computed = path == WORKLOADS;
            let shown = items.iter().map(|item| {
                let mut shown = json!({
                    "namespace": item["metadata"]["namespace"],
                    "name": item["metadata"]["name"],
                    "uid": item["metadata"]["uid"],
                });
                if is_computed {
                    shown["summary"] = item["summary"].clone();
                    shown["status"] = item["status"].clone();
                    shown["findings"] = findings(item).into();
                }
                if let Some(points) = item.get("points") {
                    shown["points"] = points.clone();
                }
                shown
            });
            expected.insert(path.clone(), shown.collect());
        }
    }
    if !missing.is_empty() {
        bail!("add an object of each of these to xtask/fixture/objects.yaml: {missing:?}");
    }
    Ok(expected)
}

/// How many findings a workload's report quotes.
fn findings(report: &Value) -> usize {
    let of = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let containers = of(report, "containers");
    let reports = containers
        .iter()
        .flat_map(|one| of(one, "vulnerabilityReports"));
    let results = reports.flat_map(|one| of(&one["report"], "results"));
    results.map(|one| of(&one, "vulnerabilities").len()).sum()
}

/// Moves the store into PostgreSQL, as users do, and keeps a dump of it.
fn dump(binary: &Path, data: &Path, directory: &Directory, file: &Path) -> Result<()> {
    let backup = directory.join("backup");
    let mut command = Command::new(binary);
    command
        .arg("backup")
        .arg("--data")
        .arg(data)
        .arg("--to")
        .arg(&backup);
    succeed(&mut command)?;
    let postgres = Postgres::start(Durability::Unsynced)?;
    let database = postgres.database()?;
    let mut command = Command::new(binary);
    command.arg("restore").arg("--from").arg(&backup);
    command.args(["--postgres", &postgres.url(&database)]);
    succeed(&mut command)?;
    fs::write(file, postgres.dump(&database)?)?;
    Ok(())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("starting {:?}", command.get_program()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {complaint}");
    Ok(())
}
