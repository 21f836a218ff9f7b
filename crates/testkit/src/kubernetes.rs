//! A real control plane on private ports: etcd, kube-apiserver (with a front proxy, so that it can
//! aggregate other servers) and, where asked, the two controllers that Muster has counterparts of
//! (garbage collection, namespace deletion).

use crate::binaries::{self, Binaries};
use crate::certificates::{Authority, Certificates, Pair, signing_key};
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

/// Who the front proxy must be.
pub const FRONT_PROXY: &str = "front-proxy-client";

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
    authority: Authority,
    directory: Directory,
    binaries: Binaries,
}

impl Kubernetes {
    /// Finds the binaries and starts them.
    pub fn start(options: &Options) -> Result<Kubernetes> {
        let binaries = binaries::find()?;
        let etcd = Etcd::start(&binaries.etcd, options.durability)?;
        let directory = Directory::new("kubernetes")?;
        let authority = Authority::new("muster test authority")?;
        let certificates = Certificates::of(&authority)?;
        write_files(&directory, &certificates)?;
        trust_front_proxy(&directory, &Authority::new("front proxy authority")?)?;
        let (server, kubeconfig) = port::retrying(|| {
            start_server(&binaries, &directory, etcd.url(), options, &certificates)
        })?;
        fs::write(directory.join("kubeconfig"), kubeconfig.render())?;
        let controllers = match options.controllers {
            true => {
                let user = "system:kube-controller-manager";
                let kubeconfig = as_user(&kubeconfig, authority.client(user, &[])?);
                Some(start_controllers(&binaries, &directory, &kubeconfig)?)
            }
            false => None,
        };
        Ok(Kubernetes {
            controllers,
            server,
            etcd,
            kubeconfig,
            authority,
            directory,
            binaries,
        })
    }

    /// How to reach the API server as somebody else.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Kubeconfig> {
        let pair = self.authority.client(name, groups)?;
        Ok(as_user(&self.kubeconfig, pair))
    }

    /// The same as a file.
    pub fn user_path(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        // A colon would part the names of two files.
        let path = format!("{}.kubeconfig", name.replace(':', "-"));
        let path = self.directory.join(&path);
        fs::write(&path, self.user(name, groups)?.render())?;
        Ok(path)
    }

    /// The certificate with which kube-apiserver proves to be the front proxy.
    pub fn front_proxy(&self) -> Result<Pair> {
        let read = |name: &str| fs::read_to_string(self.directory.join(name));
        Ok(Pair {
            certificate: read("front-proxy.crt")?,
            key: read("front-proxy.key")?,
        })
    }

    /// The authority of that certificate.
    pub fn front_proxy_authority(&self) -> Result<String> {
        Ok(fs::read_to_string(
            self.directory.join("front-proxy-authority.crt"),
        )?)
    }

    /// Has kube-apiserver use a front proxy certificate of another authority, and
    /// publish that one beside the old. It notices by itself after a while.
    pub fn rotate_front_proxy(&self) -> Result<()> {
        trust_front_proxy(&self.directory, &Authority::new("front proxy authority")?)
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

    /// Stops the API server where it stands.
    pub fn silence_server(&mut self) -> Result<()> {
        self.server.signal("STOP")
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

fn as_user(administrator: &Kubeconfig, pair: Pair) -> Kubeconfig {
    Kubeconfig {
        token: None,
        certificate: Some((pair.certificate.into_bytes(), pair.key.into_bytes())),
        ..administrator.clone()
    }
}

/// Writes whom extension servers shall believe, and the certificate they shall see.
fn trust_front_proxy(directory: &Directory, authority: &Authority) -> Result<()> {
    let proxy = authority.client(FRONT_PROXY, &[])?;
    let files = [
        ("front-proxy-authority.crt", &authority.certificate),
        ("front-proxy.crt", &proxy.certificate),
        ("front-proxy.key", &proxy.key),
    ];
    for (name, contents) in files {
        // The files are watched: none may be seen half-written.
        let part = directory.join("part");
        fs::write(&part, contents)?;
        fs::rename(&part, directory.join(name))?;
    }
    Ok(())
}

fn write_files(directory: &Directory, certificates: &Certificates) -> Result<()> {
    let (private, public) = signing_key()?;
    let files = [
        ("authority.crt", certificates.authority.as_str()),
        ("server.crt", &certificates.server),
        ("server.key", &certificates.server_key),
        ("service-account.key", &private),
        ("service-account.pub", &public),
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
        .arg("--requestheader-client-ca-file")
        .arg(file("front-proxy-authority.crt"))
        .arg("--proxy-client-cert-file")
        .arg(file("front-proxy.crt"))
        .arg("--proxy-client-key-file")
        .arg(file("front-proxy.key"))
        .args(["--requestheader-allowed-names", FRONT_PROXY])
        .args(["--requestheader-username-headers", "X-Remote-User"])
        .args(["--requestheader-group-headers", "X-Remote-Group"])
        .args(["--requestheader-extra-headers-prefix", "X-Remote-Extra-"])
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

fn start_controllers(
    binaries: &Binaries,
    directory: &Directory,
    own: &Kubeconfig,
) -> Result<Process> {
    let kubeconfig = directory.join("controllers.kubeconfig");
    fs::write(&kubeconfig, own.render())?;
    let mut command = Command::new(&binaries.kube_controller_manager);
    command
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args([
            "--controllers",
            "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller",
        ])
        // Others would fill every namespace with service accounts and certificates. Each uses an
        // account of its own, as clusters are set up.
        .args(["--leader-elect=false", "--secure-port=0"])
        .arg("--use-service-account-credentials=true");
    let log: &Path = &directory.join("kube-controller-manager.log");
    Process::start("kube-controller-manager", &mut command, log)
}
