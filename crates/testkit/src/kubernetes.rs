//! A real control plane on private ports: etcd, kube-apiserver and, where asked, the two
//! controllers that Muster has counterparts of (garbage collection, namespace deletion).

use crate::binaries::{self, Binaries};
use crate::certificates::Certificates;
use crate::etcd::{Durability, Etcd};
use crate::http;
use crate::kubeconfig::Kubeconfig;
use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the API server may take to be ready.
const START: Duration = Duration::from_secs(90);

/// The bearer token of the administrator.
const TOKEN: &str = "muster-test-administrator";

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether etcd flushes its writes.
    pub durability: Durability,
    /// Run the garbage collector and the namespace controller too.
    pub controllers: bool,
    /// Further arguments for kube-apiserver.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::Unsynced,
            controllers: false,
            arguments: Vec::new(),
        }
    }
}

/// A running control plane; it ends when dropped.
#[derive(Debug)]
pub struct Kubernetes {
    // The order is the order of dropping: nobody loses a server that it still uses.
    controllers: Option<Process>,
    server: Process,
    etcd: Etcd,
    kubeconfig: Kubeconfig,
    directory: Directory,
    binaries: Binaries,
}

impl Kubernetes {
    /// Finds the binaries and starts them.
    pub fn start(options: &Options) -> Result<Kubernetes> {
        let binaries = binaries::find()?;
        let etcd = Etcd::start(&binaries.etcd, options.durability)?;
        let directory = Directory::new("kubernetes")?;
        let certificates = Certificates::generate()?;
        write_files(&directory, &certificates)?;
        let (server, kubeconfig) = port::retrying(|| {
            start_server(&binaries, &directory, etcd.url(), options, &certificates)
        })?;
        fs::write(directory.join("kubeconfig"), kubeconfig.render())?;
        let controllers = match options.controllers {
            true => Some(start_controllers(&binaries, &directory)?),
            false => None,
        };
        Ok(Kubernetes {
            controllers,
            server,
            etcd,
            kubeconfig,
            directory,
            binaries,
        })
    }

    /// How to reach the API server as an administrator.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// The same as a file.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// The binaries this control plane was started from.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The API server's process, for its memory and its log.
    pub fn server(&self) -> &Process {
        &self.server
    }

    /// The store under it.
    pub fn etcd(&self) -> &Etcd {
        &self.etcd
    }

    /// The controllers' process, when they were asked for.
    pub fn controllers(&mut self) -> Option<&mut Process> {
        self.controllers.as_mut()
    }
}

fn write_files(directory: &Directory, certificates: &Certificates) -> Result<()> {
    let files = [
        ("authority.crt", certificates.authority.as_str()),
        ("server.crt", &certificates.server),
        ("server.key", &certificates.server_key),
        ("service-account.key", &certificates.service_account_key),
        (
            "service-account.pub",
            &certificates.service_account_public_key,
        ),
        (
            "tokens.csv",
            &format!("{TOKEN},admin,admin,\"system:masters\"\n"),
        ),
    ];
    for (name, contents) in files {
        fs::write(directory.join(name), contents)?;
    }
    Ok(())
}

fn start_server(
    binaries: &Binaries,
    directory: &Directory,
    etcd: &str,
    options: &Options,
    certificates: &Certificates,
) -> Result<(Process, Kubeconfig)> {
    let port = port::free()?;
    let file = |name: &str| directory.join(name);
    let mut command = Command::new(&binaries.kube_apiserver);
    command
        .args(["--etcd-servers", etcd, "--bind-address", "127.0.0.1"])
        .args(["--secure-port", &port.to_string()])
        .arg("--tls-cert-file")
        .arg(file("server.crt"))
        .arg("--tls-private-key-file")
        .arg(file("server.key"))
        .arg("--client-ca-file")
        .arg(file("authority.crt"))
        .arg("--token-auth-file")
        .arg(file("tokens.csv"))
        .arg("--service-account-key-file")
        .arg(file("service-account.pub"))
        .arg("--service-account-signing-key-file")
        .arg(file("service-account.key"))
        .args(["--service-account-issuer", "https://kubernetes.default.svc"])
        .args(["--authorization-mode", "RBAC"])
        // No controller makes service accounts here, so pods must do without.
        .args(["--disable-admission-plugins", "ServiceAccount"])
        .args(["--service-cluster-ip-range", "10.0.0.0/24"])
        .args(&options.arguments);
    let mut process = Process::start("kube-apiserver", &mut command, &file("kube-apiserver.log"))?;
    let kubeconfig = Kubeconfig {
        server: format!("https://127.0.0.1:{port}"),
        authority: Some(certificates.authority.clone().into_bytes()),
        token: Some(TOKEN.into()),
        certificate: Some((
            certificates.client.clone().into_bytes(),
            certificates.client_key.clone().into_bytes(),
        )),
    };
    wait::until("the readiness of kube-apiserver", START, || {
        port::early_exit(&mut process)?;
        Ok(http::is_ready(&kubeconfig).then_some(()))
    })
    .with_context(|| format!("the log of kube-apiserver ends:\n{}", process.log_tail()))?;
    Ok((process, kubeconfig))
}

fn start_controllers(binaries: &Binaries, directory: &Directory) -> Result<Process> {
    let kubeconfig = directory.join("kubeconfig");
    let mut command = Command::new(&binaries.kube_controller_manager);
    command
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args([
            "--controllers",
            "namespace-controller,garbage-collector-controller",
        ])
        // Others would fill every namespace with service accounts and certificates.
        .args(["--leader-elect=false", "--secure-port=0"]);
    let log: &Path = &directory.join("kube-controller-manager.log");
    Process::start("kube-controller-manager", &mut command, log)
}
