//! What an older version stored is served, counted and kept current by this one. The fixtures are what that
//! version has written itself (`cargo xtask fixture`): a data directory of `muster up` and a dump of PostgreSQL
//! with the same content, an object of every kind among it. Those of the first schema, which kept no links and
//! counted no findings, are made from them by taking away what it did not have.

mod first_schema;
mod work;

use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
const IDLE: [&str; 4] = ["--scanning", "off", "--audit", "off"];
const WORKLOADS: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/workloadscanreports";
/// What `muster storage` serves; the rest is kube-apiserver's in a cluster.
const AGGREGATED: [&str; 4] = [
    "/apis/storage.sbomscanner.kubewarden.io/",
    "/apis/wgpolicyk8s.io/",
    "/apis/openreports.io/",
    "/apis/aquasecurity.github.io/",
];

/// What one version has stored.
struct Fixture(PathBuf);

impl Fixture {
    /// Those of all versions.
    fn all() -> Result<Vec<Fixture>> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let found = fs::read_dir(&place)?.map(|entry| Ok(Fixture(entry?.path())));
        let found = found.collect::<Result<Vec<_>>>()?;
        ensure!(!found.is_empty(), "no fixture in {}", place.display());
        Ok(found)
    }

    /// Unpacks the data directory.
    fn unpack(&self, data: &Path) -> Result<()> {
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(self.0.join("up.tar.gz"));
        let status = tar.arg("-C").arg(data).status()?;
        ensure!(status.success(), "tar: {status}");
        Ok(())
    }

    /// Loads the dump into a database of its own.
    fn load(&self, postgres: &Postgres) -> Result<String> {
        postgres.load(&fs::read(self.0.join("postgres.sql.gz"))?)
    }

    /// What was served when the fixture was made, by the path of each resource.
    fn expected(&self) -> Result<BTreeMap<String, Vec<Value>>> {
        let text = fs::read_to_string(self.0.join("expected.json"))?;
        Ok(serde_json::from_str(&text)?)
    }
}

fn get(kubectl: &Kubectl, path: &str) -> Result<Value> {
    let text = kubectl.succeed(&["get", "--raw", path])?;
    serde_json::from_str(&text).with_context(|| format!("{path}: {text}"))
}

fn items(kubectl: &Kubectl, path: &str) -> Result<Vec<Value>> {
    let list = get(kubectl, path)?;
    let items = list["items"].as_array().context("items")?;
    Ok(items.clone())
}

/// An object, or what a fixture says of one.
fn identity(object: &Value) -> [Option<&str>; 3] {
    let metadata = object.get("metadata").unwrap_or(object);
    ["namespace", "name", "uid"].map(|name| metadata[name].as_str())
}

/// Every object of the fixture is there, nothing else is, and what is computed is what it was.
fn assert_served(
    kubectl: &Kubectl,
    fixture: &Fixture,
    is_served: impl Fn(&str) -> bool,
) -> Result<()> {
    let mut seen = 0;
    for (path, expected) in fixture.expected()? {
        if !is_served(&path) {
            continue;
        }
        let served = items(kubectl, &path)?;
        let identities: Vec<_> = served.iter().map(identity).collect();
        let wanted: Vec<_> = expected.iter().map(identity).collect();
        assert_eq!(identities, wanted, "{path}");
        for (object, expected) in served.iter().zip(&expected) {
            for field in ["summary", "status"] {
                if path == WORKLOADS {
                    assert_eq!(object[field], expected[field], "{path}: {expected}");
                }
            }
            if path == WORKLOADS {
                assert_eq!(json!(findings(object)), expected["findings"], "{expected}");
            }
            if let Some(points) = expected.get("points") {
                assert_eq!(&object["points"], points, "{path}");
            }
        }
        seen += served.len();
    }
    assert!(seen > 0, "nothing was compared");
    Ok(())
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

#[test]
fn an_older_data_directory_is_served_as_it_was() -> Result<()> {
    for fixture in Fixture::all()? {
        let muster = Muster::start_on(MUSTER, &IDLE, |data| fixture.unpack(data))?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        assert_served(&kubectl, &fixture, |_| true)?;
        // A watch goes on from a revision that the older version gave.
        let revision = get(&kubectl, WORKLOADS)?["metadata"]["resourceVersion"].clone();
        let revision = revision.as_str().context("a revision")?;
        let watch = format!("{WORKLOADS}?watch=true&timeoutSeconds=1&resourceVersion={revision}");
        assert_eq!(kubectl.succeed(&["get", "--raw", &watch])?, "");
    }
    Ok(())
}

#[test]
fn an_older_database_is_served_as_it_was() -> Result<()> {
    let postgres = Postgres::shared()?;
    for fixture in Fixture::all()? {
        let database = fixture.load(postgres)?;
        let options = Options {
            reports: true,
            ..Options::on(postgres.url(&database))
        };
        let cluster = Cluster::start(MUSTER, &options)?;
        assert_served(&cluster.kubectl()?, &fixture, is_aggregated)?;
    }
    Ok(())
}

fn is_aggregated(path: &str) -> bool {
    AGGREGATED.iter().any(|group| path.starts_with(group))
}
