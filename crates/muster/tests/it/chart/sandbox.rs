//! What a kubelet does with a pod, as far as a process needs it: files of Secrets where they are mounted,
//! variables, arguments, and the token and CA certificate of its ServiceAccount where every pod has them. A process
//! has neither a file system nor a network of its own, so mounted directories are elsewhere and addresses are others;
//! [`Sandbox::replaced`] is all that is changed of what the chart says.

use super::{NAMESPACE, text};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::process::{Directory, Process};
use muster_testkit::wait;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a role may take to be ready.
const START: Duration = Duration::from_secs(90);

/// Where a pod finds its ServiceAccount.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Runs a program with the files of a ServiceAccount where a pod has them, in a mount namespace of its own.
const POD: &str =
    r#"mount -t tmpfs tmpfs /run && mkdir -p "$2" && cp "$1"/* "$2" && shift 2 && exec "$@""#;

/// A machine for the pods of a release.
pub(super) struct Sandbox<'a> {
    pub(super) kubectl: &'a Kubectl,
    /// How an administrator reaches kube-apiserver.
    pub(super) administrator: Kubeconfig,
    pub(super) directory: &'a Directory,
    /// What is said in the chart, and what is meant here.
    pub(super) addresses: Vec<(String, String)>,
    /// Where claims are, whatever their name.
    pub(super) claim: PathBuf,
}

/// The process of a role.
pub(super) struct Role {
    process: Process,
    command: Box<dyn Fn() -> Command>,
    log: PathBuf,
}

impl Sandbox<'_> {
    /// Starts what a Deployment of the cluster says, as the account that it names.
    pub(super) fn start(&self, role: &str, more: &[(&str, String)]) -> Result<Role> {
        let name = format!("muster-{role}");
        let deployment = self.get(&["deployment", &name])?;
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        ensure!(
            container.get("command").is_none(),
            "the image's own is meant"
        );
        let mounts = self.mount(role, pod, container)?;
        let arguments = container["args"].as_array().into_iter().flatten();
        let arguments = arguments.filter_map(Value::as_str);
        let arguments: Vec<String> = arguments.map(|said| self.replaced(said, &mounts)).collect();
        let account = self.account(role, pod)?;
        let server = self.administrator.server.strip_prefix("https://");
        let (host, port) = server
            .and_then(|server| server.rsplit_once(':'))
            .context("a port")?;
        let mut variables = vec![
            ("KUBERNETES_SERVICE_HOST".to_owned(), host.to_owned()),
            ("KUBERNETES_SERVICE_PORT".into(), port.to_owned()),
            ("PATH".into(), std::env::var("PATH")?),
        ];
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = text(variable, "/value");
            variables.push((
                text(variable, "/name").into(),
                self.replaced(value, &mounts),
            ));
        }
        variables.extend(
            more.iter()
                .map(|(name, value)| ((*name).into(), value.clone())),
        );
        let command = move || {
            let mut command = Command::new("unshare");
            command.args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                POD,
                "sh",
            ]);
            command.arg(&account).args([ACCOUNT, super::MUSTER]);
            command.args(&arguments).env_clear();
            command.envs(variables.iter().map(|(name, value)| (name, value)));
            command
        };
        let log = self.directory.join(&format!("{role}.log"));
        let process = Process::start(&name, &mut command(), &log)?;
        Ok(Role {
            process,
            command: Box::new(command),
            log,
        })
    }

    fn get(&self, what: &[&str]) -> Result<Value> {
        let arguments = [&["-n", NAMESPACE, "get"], what, &["-o", "json"]].concat();
        Ok(serde_json::from_str(&self.kubectl.succeed(&arguments)?)?)
    }

    /// A directory with what a pod is given of its account.
    fn account(&self, role: &str, pod: &Value) -> Result<PathBuf> {
        let account = text(pod, "/serviceAccountName");
        let token = self
            .kubectl
            .succeed(&["-n", NAMESPACE, "create", "token", account])?;
        let authority = self.administrator.authority.as_ref();
        let path = self.directory.join(&format!("{role}-account"));
        fs::create_dir_all(&path)?;
        fs::write(path.join("token"), token.trim())?;
        fs::write(path.join("ca.crt"), authority.context("an authority")?)?;
        fs::write(path.join("namespace"), NAMESPACE)?;
        Ok(path)
    }

    /// Makes the volumes of a pod; returns where its container has them and where they are.
    fn mount(&self, role: &str, pod: &Value, container: &Value) -> Result<Vec<(String, String)>> {
        let volumes = pod["volumes"].as_array().context("volumes")?;
        let mounts = container["volumeMounts"].as_array().context("mounts")?;
        let mut places = Vec::new();
        for mount in mounts {
            let name = text(mount, "/name");
            let volume = volumes.iter().find(|volume| volume["name"] == name);
            let volume = volume.with_context(|| format!("no volume {name}"))?;
            let place = match volume.get("persistentVolumeClaim") {
                Some(_) => self.claim.clone(),
                None => self.directory.join(&format!("{role}-{name}")),
            };
            fs::create_dir_all(&place)?;
            if let Some(secret) = volume.get("secret") {
                self.fill(secret, &place)?;
            }
            places.push((
                text(mount, "/mountPath").into(),
                place.display().to_string(),
            ));
        }
        Ok(places)
    }

    fn fill(&self, volume: &Value, place: &Path) -> Result<()> {
        let secret = self.get(&["secret", text(volume, "/secretName")])?;
        for item in volume["items"].as_array().context("items")? {
            let data = text(&secret["data"], &format!("/{}", text(item, "/key")));
            ensure!(!data.is_empty(), "{item} is not in {volume}");
            fs::write(place.join(text(item, "/path")), STANDARD.decode(data)?)?;
        }
        Ok(())
    }

    /// What an argument or a variable means here. It names one mounted path at most.
    fn replaced(&self, said: &str, mounts: &[(String, String)]) -> String {
        let mount = mounts.iter().find(|(there, _)| said.contains(there));
        let table = self.addresses.iter().chain(mount);
        table.fold(said.to_owned(), |said, (there, here)| {
            said.replace(there, here)
        })
    }
}

impl Role {
    /// Waits until it is ready by `is_ready`. A port that somebody took meanwhile is waited for.
    pub(super) fn wait_ready(&mut self, is_ready: impl Fn() -> bool) -> Result<()> {
        let what = format!("the readiness of {}", self.process.name());
        let ready = wait::until(&what, START, || {
            if let Some(status) = self.process.exit_status()? {
                let taken = self.log().contains("is in use by another process");
                ensure!(taken, "it ended with {status}");
                let name = self.process.name().to_owned();
                self.process = Process::start(&name, &mut (self.command)(), &self.log)?;
            }
            Ok(is_ready().then_some(()))
        });
        ready.with_context(|| self.log())
    }

    /// Everything that it said.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Whether a path is answered with 200, in plain HTTP.
pub(super) fn answers(port: u16, path: &str) -> bool {
    let ask = || -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
