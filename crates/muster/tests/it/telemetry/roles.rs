//! An operator and a worker, asked how they are by whoever keeps them alive. What they work with is
//! a real NATS, and `muster up` in the place of kube-apiserver.

use super::{LIMIT, value};
use crate::scan::{data, ended, job, manifests, push};
use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::nats::Nats;
use muster_testkit::process::Process;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use regex::Regex;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A role, and where it says how it is.
struct Role {
    process: Process,
    address: String,
}

impl Role {
    fn start(
        name: &str,
        arguments: &[&str],
        muster: &Muster,
        nats: &Nats,
        log: &Path,
    ) -> Result<Role> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command
            .arg(name)
            .arg("--kubeconfig")
            .arg(muster.kubeconfig_path());
        command.args(["--nats", &nats.url()]).args(arguments);
        let process = Process::start(name, &mut command, log)?;
        let told = Regex::new(r"telling health and metrics.*?(127\.0\.0\.1:\d+)")?;
        let address = wait::until(&format!("the address of {name}"), LIMIT, || {
            let text = std::fs::read_to_string(log)?;
            Ok(told.captures(&text).map(|found| found[1].to_owned()))
        })
        .with_context(|| process.log_tail())?;
        Ok(Role { process, address })
    }

    /// The status and the text of an answer.
    fn get(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split_whitespace().nth(1).context("a status")?;
        Ok((status.parse()?, answer))
    }

    fn until(&self, status: u16, word: &str) -> Result<()> {
        let what = format!("/readyz with {status} and {word:?}");
        let seen = wait::until(&what, LIMIT, || {
            let (told, text) = self.get("/readyz")?;
            Ok((told == status && text.contains(word)).then_some(()))
        });
        seen.with_context(|| self.process.log_tail())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_tell_how_they_are_and_what_they_did() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let files = tempfile::tempdir()?;
    let database = files.path().join("vulnerabilities");
    std::fs::create_dir(&database)?;
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let mut nats = Nats::start()?;
    let log = |name: &str| files.path().join(name);
    let operator = Role::start("operator", &[], &muster, &nats, &log("operator.log"))?;
    let directory = database.to_string_lossy().into_owned();
    let arguments = ["--database", &directory, "--db-update", "off"];
    let worker = Role::start("worker", &arguments, &muster, &nats, &log("worker.log"))?;
    operator.until(200, "[+] kube-apiserver")?;
    // A worker without data can read images all the same, and says so.
    worker.until(200, "[?] vulnerability data")?;
    data(&database)?;
    worker.until(200, "[+] vulnerability data")?;

    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    let reason = ended(&kubectl, "first").with_context(|| worker.process.log_tail())?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let metrics = wait::until("the end of the job in the numbers", LIMIT, || {
        let (_, metrics) = operator.get("/metrics")?;
        let line = r#"muster_jobs_ended_total{kind="ScanJob",reason="AllImagesScanned"}"#;
        Ok((value(&metrics, line) == Some(1.0)).then_some(metrics))
    })?;
    assert!(
        metrics.contains("application/openmetrics-text"),
        "{metrics}"
    );
    assert_eq!(value(&metrics, "muster_leader"), Some(1.0), "{metrics}");
    let waiting = r#"muster_queue_messages{subject="sbomscanner.sbom.scan",state="waiting"}"#;
    assert_eq!(value(&metrics, waiting), Some(0.0), "{metrics}");
    let (_, metrics) = worker.get("/metrics")?;
    assert_eq!(value(&metrics, "muster_leader"), Some(0.0), "{metrics}");
    let read = r#"muster_images_total{outcome="read"}"#;
    assert_eq!(value(&metrics, read), Some(2.0), "{metrics}");

    nats.kill9()?;
    // An operator is asked about our kinds all the same.
    for (role, status, word) in [(&operator, 200, "[?] queue"), (&worker, 503, "[-] queue")] {
        role.until(status, word)?;
        assert_eq!(role.get("/healthz")?.0, 200);
        let (status, metrics) = role.get("/metrics")?;
        assert_eq!((status, value(&metrics, waiting)), (200, None), "{metrics}");
    }
    nats.restart()?;
    operator.until(200, "[+] queue")?;
    worker.until(200, "[+] queue")
}
