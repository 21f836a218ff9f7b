//! A machine on which somebody follows a page: a home, a working directory with the examples, a real
//! registry in place of those on the internet, and vulnerability data. Commands are run as they are
//! written; what has to be another here is in [`ELSEWHERE`] and in the variables of [`Desk::command`], and
//! nowhere else.

use super::console::{self, Command};
use super::markdown::Page;
use super::root;
use super::site::Site;
use anyhow::{Context, Result, bail, ensure};
use muster_testkit::binaries;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::layout::Layout;
use muster_testkit::muster::Muster;
use muster_testkit::policies::{self, Abi};
use muster_testkit::process::Process;
use muster_testkit::push::Pusher;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_muster");
/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// What pages write, and what stands for it in files and commands here. The registry has no certificate.
const ELSEWHERE: [(&str, &str); 4] = [
    ("registry.k8s.io", "REGISTRY"),
    ("scanInterval: 24h", "scanInterval: 24h\n  insecure: true"),
    // What is to be tested has been built already.
    (
        "cargo install --locked --path crates/muster",
        "muster --version",
    ),
    // It would never end.
    ("kubectl get scanjobs --watch", "kubectl get scanjobs"),
];
/// What pages show, and what a machine with other ports and times shows.
const VARYING: [(&str, &str); 1] = [("127.0.0.1:7443", "…")];
/// The images of the registry that pages name.
const IMAGES: [(&str, &str); 6] = [
    ("library/debian", "12"),
    ("team/app", "1.4"),
    ("coredns/coredns", "v1.11.1"),
    ("coredns/coredns", "v1.0.0"),
    ("pause", "3.10"),
    ("pause", "3.9"),
];

/// Where the registry has vulnerability data.
const DATA: &str = "mirror/trivy-db";

/// Somebody's machine.
pub(super) struct Desk {
    registry: Registry,
    /// What plays the cluster of `~/.kube/config`, if the page speaks of one.
    cluster: Option<Muster>,
    /// The cluster that a page installs something in.
    pub(super) site: Option<Site>,
    /// What was exported.
    variables: BTreeMap<String, String>,
    /// What goes on until the page has been followed.
    servers: Vec<Process>,
    /// Removed last, when nobody writes there any more.
    directory: TempDir,
}

impl Desk {
    /// A machine for a page.
    pub(super) async fn new(page: &Page) -> Result<Desk> {
        let registry = Registry::start()?;
        for (repository, tag) in IMAGES {
            crate::scan::push_as(&registry, repository, Some(tag), 2026).await?;
        }
        let mut desk = Desk {
            directory: tempfile::tempdir()?,
            registry,
            cluster: None,
            site: None,
            variables: BTreeMap::new(),
            servers: Vec::new(),
        };
        fs::create_dir_all(desk.work())?;
        fs::create_dir_all(desk.temporary())?;
        fs::create_dir_all(desk.vulnerabilities())?;
        crate::scan::data(&desk.vulnerabilities())?;
        desk.lay_out_tools()?;
        desk.copy("examples")?;
        desk.write_archives()?;
        desk.publish_data().await?;
        let module = policies::forbidding(
            Abi::Wapc,
            "\"privileged\":true",
            "privileged containers are not allowed",
        );
        desk.write("modules/privileged.wasm", module)?;
        desk.write(
            "privileged.wasm",
            fs::read(desk.work().join("modules/privileged.wasm"))?,
        )?;
        if page.says("~/.kube/config") {
            desk.cluster = Some(desk.start_cluster()?);
        }
        Ok(desk)
    }

    pub(super) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.directory.path().join("temporary")
    }

    fn vulnerabilities(&self) -> PathBuf {
        self.home().join(".local/share/muster/vulnerabilities")
    }

    /// Writes a file of the working directory.
    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().context("a directory")?)?;
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// `muster` and the `kubectl` and `helm` of the tests come first in the path.
    fn lay_out_tools(&self) -> Result<()> {
        let tools = self.directory.path().join("bin");
        fs::create_dir_all(&tools)?;
        let link = |from: &Path, name: &str| std::os::unix::fs::symlink(from, tools.join(name));
        link(Path::new(BINARY), "muster")?;
        for name in ["kubectl", "helm"] {
            link(&binaries::find_one(name)?, name)?;
        }
        Ok(())
    }

    /// Has something of the repository in the working directory, as it is.
    pub(super) fn lay_out(&self, name: &str) -> Result<()> {
        let from = fs::canonicalize(root().join(name))?;
        std::os::unix::fs::symlink(from, self.work().join(name)).with_context(|| name.to_owned())
    }

    /// Copies a directory of the repository, with what is elsewhere here.
    fn copy(&self, directory: &str) -> Result<()> {
        for entry in fs::read_dir(root().join(directory))? {
            let entry = entry?;
            let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.copy(&name)?;
            } else {
                self.write(&name, self.here(&fs::read_to_string(entry.path())?))?;
            }
        }
        Ok(())
    }

    /// Archives of an image and of vulnerability data, as pages name them.
    fn write_archives(&self) -> Result<()> {
        let layout = self.directory.path().join("layout");
        let (plain, _) = crate::scan::layer()?;
        let made = Layout::create(&layout)?;
        let layer = made.layer(plain.as_slice())?;
        made.image("app:1", &[layer])?;
        let tar = |options: &str, file: &str, from: &Path| -> Result<()> {
            let mut command = process::Command::new("tar");
            command.arg(options).arg(self.work().join(file));
            let status = command.arg("-C").arg(from).arg(".").status()?;
            ensure!(status.success(), "tar failed");
            Ok(())
        };
        tar("-cf", "image.tar", &layout)?;
        tar("-czf", "trivy-db.tar.gz", &self.vulnerabilities())
    }

    /// The vulnerability data as it is published, in the registry.
    async fn publish_data(&self) -> Result<()> {
        const CONFIG: &str = "application/vnd.aquasec.trivy.config.v1+json";
        const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";
        let archive = fs::read(self.work().join("trivy-db.tar.gz"))?;
        let layers = [(LAYER, archive.as_slice())];
        let pusher = Pusher::new(&self.registry)?;
        let pushed = pusher.artifact(DATA, Some("2"), (CONFIG, b"{}"), &layers);
        pushed.await.map(drop)
    }

    /// A server that plays a cluster in which something runs.
    fn start_cluster(&self) -> Result<Muster> {
        let cluster = Muster::start_idle(BINARY)?;
        let kubectl = Kubectl::new(&cluster.kubeconfig_path())?;
        kubectl.succeed(&["create", "namespace", "shop"])?;
        let image = format!("{}/team/app:1.4", self.registry.host());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"containers": [{"name": "main", "image": image}]},
        });
        kubectl.succeed_with(&["create", "-f", "-"], &pod.to_string())?;
        let place = self.home().join(".kube/config");
        fs::create_dir_all(place.parent().context("a directory")?)?;
        fs::copy(cluster.kubeconfig_path(), &place)?;
        let known = kubectl.succeed(&["config", "current-context"])?;
        let rename = ["config", "rename-context", known.trim(), "production"];
        let renamed = kubectl
            .command(&rename)
            .env("KUBECONFIG", &place)
            .output()?;
        ensure!(renamed.status.success(), "{renamed:?}");
        Ok(cluster)
    }

    /// A text of a page as it has to be here.
    pub(super) fn here(&self, text: &str) -> String {
        let replaced = ELSEWHERE
            .iter()
            .fold(text.to_owned(), |text, (there, here)| {
                text.replace(there, here)
            });
        replaced.replace("REGISTRY", &self.registry.host())
    }

    /// Does what a command says, and sees that it ends and says what the page shows.
    pub(super) fn follow(&mut self, command: &Command) -> Result<()> {
        let text = self.here(&command.text);
        let shown = command.shown.iter().map(|line| {
            let line = self.here(line);
            VARYING
                .iter()
                .fold(line, |line, (there, here)| line.replace(there, here))
        });
        let shown: Vec<String> = shown.collect();
        if let Some(pair) = text.strip_prefix("export ") {
            return self.export(pair);
        }
        if console::is_server(&text) {
            return self.serve(&text, &shown);
        }
        let judged = |code: Option<i32>, said: &str| {
            let is_said = shown.is_empty() || console::is_shown(&shown, said);
            code == Some(command.code) && is_said
        };
        let mut last = (None, String::new());
        let outcome = wait::until(&text, LIMIT, || {
            last = self.run(&text)?;
            if judged(last.0, &last.1) {
                return Ok(Some(true));
            }
            // What is asked for may still be on its way; anything else is done once.
            Ok((!console::is_question(&text)).then_some(false))
        });
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => bail!(
                "it ended with {:?}, not {}, and said:\n{}\nwhere the page shows:\n{}\nthe server said:\n{}",
                last.0,
                command.code,
                last.1,
                shown.join("\n"),
                self.servers
                    .last()
                    .map(Process::log_tail)
                    .unwrap_or_default(),
            ),
        }
    }

    /// Something that is run, with everything around it.
    fn command(&self, words: &[&str]) -> process::Command {
        let host = self.registry.host();
        let tools = self.directory.path().join("bin");
        let own = self.home().join(".local/bin").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mirrors = ["docker.io", "registry.example"].map(|from| format!("{from}=http://{host}"));
        let mut command = process::Command::new("env");
        command
            .args(words)
            .current_dir(self.work())
            .env("PATH", format!("{}:{own}:{path}", tools.display()))
            .env("HOME", self.home())
            // What is killed cannot tidy up.
            .env("TMPDIR", self.temporary())
            // A free port, and nothing from the internet.
            .env("MUSTER_LISTEN", "127.0.0.1:0")
            .env("MUSTER_DB_UPDATE", "off")
            .env("MUSTER_DB_REPOSITORY", format!("{host}/{DATA}:2"))
            .env("MUSTER_DATABASE", self.vulnerabilities())
            .env("MUSTER_MIRRORS", mirrors.join(","))
            .envs(&self.variables);
        for name in [
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "DOCKER_CONFIG",
            "MUSTER_DATA",
        ] {
            command.env_remove(name);
        }
        if !self.variables.contains_key("KUBECONFIG") {
            command.env_remove("KUBECONFIG");
        }
        command
    }

    /// Runs something to its end: how it ended, and what a terminal would show.
    fn run(&self, text: &str) -> Result<(Option<i32>, String)> {
        let log = tempfile::tempfile()?;
        // What never ends is told, and holds nobody up.
        let status = self
            .command(&["timeout", "--kill-after=10", "600", "bash", "-c", text])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .status()
            .with_context(|| format!("running {text}"))?;
        let mut log = log;
        let mut said = String::new();
        std::io::Seek::rewind(&mut log)?;
        std::io::Read::read_to_string(&mut log, &mut said)?;
        Ok((status.code(), said))
    }

    /// Runs something that a page takes for granted.
    pub(super) fn prepare(&self, text: &str) -> Result<String> {
        let (code, said) = self.run(text)?;
        ensure!(code == Some(0), "{text} ended with {code:?}: {said}");
        Ok(said)
    }

    pub(super) fn export(&mut self, pair: &str) -> Result<()> {
        let (name, value) = pair.split_once('=').context("export NAME=VALUE")?;
        let (code, said) = self.run(&format!("printf %s {value}"))?;
        ensure!(code == Some(0), "export {pair}: {said}");
        self.variables.insert(name.to_owned(), said);
        Ok(())
    }

    /// Starts what goes on, and waits until it has said what the page shows.
    pub(super) fn serve(&mut self, text: &str, shown: &[String]) -> Result<()> {
        // It goes on, and may have more to say.
        let shown = [shown, &["…".to_owned()]].concat();
        let log = tempfile::Builder::new().tempfile_in(self.directory.path())?;
        let (_, log) = log.keep()?;
        let mut command = self.command(&["bash", "-c", &format!("exec {text}")]);
        let mut server = Process::start("the server of the page", &mut command, &log)?;
        let outcome = wait::until(text, LIMIT, || {
            ensure!(
                server.exit_status()?.is_none(),
                "it ended:\n{}",
                server.log_tail()
            );
            let said = fs::read_to_string(&log)?;
            let is_ready = said.contains(" serves ") && console::is_shown(&shown, &said);
            Ok(is_ready.then_some(()))
        });
        outcome.with_context(|| format!("it said:\n{}", server.log_tail()))?;
        self.servers.push(server);
        Ok(())
    }
}
