//! Scanning as it runs in a cluster: kube-apiserver, PostgreSQL and NATS, two `muster storage`, an
//! operator and two workers, each a process that may be killed.

use super::{MUSTER, SOON, options};
use crate::scan::{data, ended, get, job, manifests, push};
use anyhow::{Context, Result, ensure};
use muster_testkit::nats::Nats;
use muster_testkit::process::Process;
use muster_testkit::registry::Registry;
use muster_testkit::storage::{Cluster, Options};
use muster_testkit::{port, wait};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The roles that scan in a cluster, and what they need.
struct Installation {
    operator: Process,
    workers: Vec<Process>,
    nats: Nats,
    cluster: Cluster,
    files: TempDir,
    /// Where kube-apiserver asks the operator.
    webhook: u16,
}

impl Installation {
    fn new() -> Result<Installation> {
        let options = Options {
            replicas: 2,
            controllers: true,
            ..options()?
        };
        let cluster = Cluster::start(MUSTER, &options)?;
        let kubectl = cluster.kubectl()?;
        let crds = Command::new(MUSTER)
            .args(["crds", "--group", "sbomscanner.kubewarden.io"])
            .output()?;
        ensure!(crds.status.success(), "{crds:?}");
        let crds = String::from_utf8(crds.stdout)?;
        kubectl.succeed_with(&["apply", "--server-side", "-f", "-"], &crds)?;
        kubectl.succeed(&["wait", "--for=condition=Established", "crd", "--all"])?;
        let files = tempfile::tempdir()?;
        let vulnerabilities = files.path().join("vulnerabilities");
        fs::create_dir(&vulnerabilities)?;
        data(&vulnerabilities)?;
        let storage = cluster.replicas().first().context("a replica")?;
        let authority = storage.kubeconfig().authority.clone();
        fs::write(
            files.path().join("layers.crt"),
            authority.context("an authority")?,
        )?;
        let (nats, webhook) = (Nats::start()?, port::free()?);
        let mut installation = Installation {
            operator: operator(webhook, &cluster, &nats, &files, "operator.log")?,
            workers: Vec::new(),
            nats,
            cluster,
            files,
            webhook,
        };
        for number in 0..2 {
            let worker = installation.worker(number)?;
            installation.workers.push(worker);
        }
        Ok(installation)
    }

    fn worker(&self, number: usize) -> Result<Process> {
        let log = format!("worker-{number}.log");
        let mut command = role("worker", &self.cluster, &self.nats)?;
        let storage = self.cluster.replicas().first().context("a replica")?;
        let file = |name: &str| -> PathBuf { self.files.path().join(name) };
        command.arg("--database").arg(file("vulnerabilities"));
        command.args(["--db-update", "off"]);
        command.args(["--layers", &storage.kubeconfig().server]);
        command.arg("--layers-ca").arg(file("layers.crt"));
        Process::start("worker", &mut command, &file(&log))
    }

    /// Nothing was tried that a role may not do.
    fn lacks_no_right(&self) -> Result<()> {
        for file in fs::read_dir(self.files.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let log = fs::read_to_string(&path)?;
                let refused = log.lines().find(|line| line.contains("forbidden"));
                ensure!(refused.is_none(), "{}: {refused:?}", path.display());
            }
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let processes = [&self.operator].into_iter().chain(&self.workers);
        let tails: Vec<String> = processes.map(Process::log_tail).collect();
        tails.join("\n---\n")
    }
}

/// A role as the user that it is in a cluster, with the rights of that.
fn role(role: &str, cluster: &Cluster, nats: &Nats) -> Result<Command> {
    let mut command = Command::new(MUSTER);
    command.arg(role).arg("--kubeconfig");
    command.arg(cluster.role_path(role)?);
    command.args(["--nats", &nats.url()]);
    Ok(command)
}

fn operator(
    webhook: u16,
    cluster: &Cluster,
    nats: &Nats,
    files: &TempDir,
    log: &str,
) -> Result<Process> {
    let mut command = role("operator", cluster, nats)?;
    let address = format!("127.0.0.1:{webhook}");
    command.args(["--webhook-listen", &address]);
    command.args(["--webhook-url", &format!("https://{address}")]);
    Process::start("operator", &mut command, &files.path().join(log))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_scans_a_registry_whoever_is_killed() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let mut installation = Installation::new()?;
    let kubectl = installation.cluster.kubectl()?;
    wait::until("the namespace of the installation", SOON, || {
        Ok(kubectl.succeed(&["get", "namespace", "muster"]).ok())
    })?;
    wait::until("the webhooks", SOON, || {
        let outcome = kubectl.run(&["get", "validatingwebhookconfiguration", "muster"], "")?;
        Ok(outcome.status.success().then_some(()))
    })
    .with_context(|| installation.logs())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    let scan = |name: &str| kubectl.succeed_with(&["apply", "-f", "-"], &job(name, "local"));
    scan("first")?;
    let reason = ended(&kubectl, "first").with_context(|| installation.logs())?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let reports = get(&kubectl, &["vulnerabilityreports"])?;
    let reports = reports["items"].as_array().context("reports")?;
    assert_eq!(reports.len(), 2);
    for report in reports {
        assert_eq!(report["report"]["summary"]["critical"], 1, "{report}");
    }
    let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
    assert_eq!(report["summary"]["critical"], 1, "{report}");
    scan("second")?;
    let reason = ended(&kubectl, "second").with_context(|| installation.logs())?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let status = get(&kubectl, &["scanjob", "second"])?["status"].clone();
    assert_eq!(status["readImagesCount"], 0, "{status}");
    assert_eq!(status["matchedImagesCount"], 0, "{status}");

    // Of two at once the second is told for whom it waits, and has its turn.
    let both = [job("beside", "local"), job("behind", "local")].join("\n---\n");
    let told = kubectl.run(&["create", "-f", "-"], &both)?;
    assert!(told.status.success(), "{told:?}");
    let why = r#"ScanJob default/beside works on the Registry "local""#;
    assert!(told.stderr.contains(why), "{told:?}");
    for name in ["beside", "behind"] {
        let reason = ended(&kubectl, name).with_context(|| installation.logs())?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
    }

    // Another build of the image, while everybody who could scan it is killed.
    push(&registry, 2025).await?;
    scan("third")?;
    installation.workers[0].kill9()?;
    installation.operator.kill9()?;
    installation.nats.kill9()?;
    installation.workers[1].kill9()?;
    installation.nats.restart()?;
    let (cluster, nats, files) = (
        &installation.cluster,
        &installation.nats,
        &installation.files,
    );
    let webhook = installation.webhook;
    installation.operator = operator(webhook, cluster, nats, files, "operator-again.log")?;
    let worker = installation.worker(2)?;
    installation.workers.push(worker);
    let reason = ended(&kubectl, "third").with_context(|| installation.logs())?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let status = get(&kubectl, &["scanjob", "third"])?["status"].clone();
    assert_eq!(status["imagesCount"], 2, "{status}");
    assert_eq!(status["scannedImagesCount"], 2, "{status}");
    installation.lacks_no_right()
}
