//! What nodes would do with a release that Helm has installed: its roles run, here as processes, with a
//! PostgreSQL and a NATS server of the tests in place of the bundled ones, and kube-apiserver finds them.

use super::NAMESPACE;
use super::sandbox::{Role, Sandbox, answers};
use crate::scan::LIMIT;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_testkit::http;
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::Kubernetes;
use muster_testkit::nats::Nats;
use muster_testkit::port;
use muster_testkit::postgres::Postgres;
use muster_testkit::process::Directory;
use muster_testkit::wait;
use serde_json::json;
use std::path::PathBuf;

/// The aggregated API of a release.
pub(super) const SERVICE: &str = "v1alpha1.storage.sbomscanner.kubewarden.io";

/// The nodes of a cluster; what they run ends when dropped.
pub(crate) struct Nodes {
    // The order is the order of dropping.
    roles: Vec<Role>,
    nats: Nats,
    database: String,
    kubectl: Kubectl,
    /// How an administrator reaches kube-apiserver.
    administrator: Kubeconfig,
    /// Where `muster storage` and the webhooks are on this machine.
    api: u16,
    webhook: u16,
    claim: PathBuf,
    directory: Directory,
}

impl Nodes {
    /// Nodes on which nothing runs yet.
    pub(crate) fn new(kubernetes: &Kubernetes) -> Result<Nodes> {
        let postgres = Postgres::shared()?;
        let directory = Directory::new("chart")?;
        let claim = directory.join("claim");
        std::fs::create_dir(&claim)?;
        Ok(Nodes {
            roles: Vec::new(),
            nats: Nats::start()?,
            database: postgres.url(&postgres.database()?),
            kubectl: Kubectl::new(&kubernetes.kubeconfig_path())?,
            administrator: kubernetes.kubeconfig().clone(),
            api: port::free()?,
            webhook: port::free()?,
            claim,
            directory,
        })
    }

    /// Where claims are, whatever their name.
    pub(super) fn claim(&self) -> &PathBuf {
        &self.claim
    }

    /// Has kube-apiserver find the storage on this machine: a Service leads to pods, of which there are
    /// none.
    pub(crate) fn lead(&self) -> Result<()> {
        let name = "muster-storage";
        self.kubectl
            .succeed(&["-n", NAMESPACE, "delete", "service", name])?;
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        });
        self.kubectl
            .succeed_with(&["create", "-f", "-"], &service.to_string())?;
        let patch = json!({"spec": {"service": {"port": self.api}}}).to_string();
        let patch = ["patch", "apiservice", SERVICE, "--type=merge", "-p", &patch];
        self.kubectl.succeed(&patch).map(drop)
    }

    /// Runs `muster storage`, and waits until it serves.
    pub(crate) fn store(&mut self) -> Result<()> {
        let mut role = self.sandbox(0).start("storage", &[])?;
        let believed = [
            "get",
            "apiservice",
            SERVICE,
            "-o",
            "jsonpath={.spec.caBundle}",
        ];
        let authority = STANDARD.decode(self.kubectl.succeed(&believed)?)?;
        let stored = Kubeconfig {
            server: format!("https://localhost:{}", self.api),
            authority: Some(authority),
            ..self.administrator.clone()
        };
        role.wait_ready(|| http::is_ready(&stored))?;
        self.roles.push(role);
        let (version, group) = SERVICE.split_once('.').context("a group")?;
        let probe = format!("/apis/{group}/{version}");
        self.wait("the aggregated API", &["get", "--raw", &probe])
    }

    /// Runs `muster operator`, and waits until kube-apiserver knows to ask it.
    pub(crate) fn decide(&mut self) -> Result<()> {
        let health = port::free()?;
        let asked = format!("https://127.0.0.1:{}", self.webhook);
        let asked = [("MUSTER_WEBHOOK_URL", asked)];
        let mut role = self.sandbox(health).start("operator", &asked)?;
        role.wait_ready(|| answers(health, "/readyz"))?;
        self.roles.push(role);
        wait::until("the webhooks", LIMIT, || {
            Ok((!super::webhooks::names(&self.kubectl)?.is_empty()).then_some(()))
        })
        .with_context(|| self.log())
    }

    /// Runs `muster worker`.
    pub(super) fn scan(&mut self) -> Result<()> {
        let health = port::free()?;
        let mut role = self.sandbox(health).start("worker", &[])?;
        role.wait_ready(|| answers(health, "/readyz"))?;
        self.roles.push(role);
        Ok(())
    }

    fn wait(&self, what: &str, probe: &[&str]) -> Result<()> {
        let there = wait::until(what, LIMIT, || {
            let outcome = self.kubectl.run(probe, "")?;
            Ok(outcome.status.success().then_some(()))
        });
        there.with_context(|| self.log())
    }

    /// Everything that those who run have said.
    pub(super) fn log(&self) -> String {
        self.roles
            .iter()
            .map(Role::log)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The two roles with a port of their own for health are told apart by which of them is asked.
    fn sandbox(&self, health: u16) -> Sandbox<'_> {
        let here = |port: u16| format!("127.0.0.1:{port}");
        let said = [
            ("nats://muster-nats.muster.svc:4222", self.nats.url()),
            (
                "postgres://muster@muster-postgresql.muster.svc:5432/muster",
                self.database.clone(),
            ),
            (
                "https://muster-storage.muster.svc",
                format!("https://localhost:{}", self.api),
            ),
            ("[::]:7443", here(self.api)),
            ("[::]:9443", here(self.webhook)),
            ("[::]:8080", here(health)),
        ];
        Sandbox {
            kubectl: &self.kubectl,
            administrator: self.administrator.clone(),
            directory: &self.directory,
            addresses: said.map(|(there, here)| (there.to_owned(), here)).into(),
            claim: self.claim.clone(),
        }
    }
}
