//! `muster demo`, as somebody sees it who has never seen Muster: one command, then the commands that it
//! prints, copied as they stand. Whoever asks for anything beyond this machine is caught.

use anyhow::{Context, Result, ensure};
use muster_testkit::binaries;
use muster_testkit::process::{Directory, Process};
use muster_testkit::wait;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long it may take on a machine that does other things meanwhile.
const LIMIT: Duration = Duration::from_secs(180);
/// How long it may take to end.
const STOP: Duration = Duration::from_secs(90);

/// Stands where a proxy would be, and counts who comes: everybody who asks another machine.
struct Outside {
    address: String,
    askers: Arc<AtomicUsize>,
}

impl Outside {
    fn new() -> Result<Outside> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = format!("http://{}", listener.local_addr()?);
        let askers = Arc::new(AtomicUsize::new(0));
        let count = askers.clone();
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(Outside { address, askers })
    }
}

/// A demonstration that runs.
struct Demo {
    process: Process,
    outside: Outside,
    directory: Directory,
}

impl Demo {
    fn start(arguments: &[&str]) -> Result<Demo> {
        let directory = Directory::new("demo")?;
        let temporary = directory.join("temporary");
        fs::create_dir(&temporary)?;
        let outside = Outside::new()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env("TMPDIR", &temporary)
            .env("HOME", directory.path())
            // What the environment says about `up` is not meant for the demonstration.
            .env("MUSTER_DB_UPDATE", "on")
            .env("MUSTER_DATA", directory.join("elsewhere"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, &outside.address);
            command.env(name.to_lowercase(), &outside.address);
        }
        for name in ["NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        let process = Process::start("muster demo", &mut command, &directory.join("demo.log"))?;
        Ok(Demo {
            process,
            outside,
            directory,
        })
    }

    /// What it has said, once it has said everything.
    fn said(&mut self) -> Result<String> {
        let log = self.process.log().to_owned();
        let said = wait::until("that the demonstration is ready", LIMIT, || {
            let text = fs::read_to_string(&log)?;
            let ended = self.process.exit_status()?;
            ensure!(ended.is_none(), "it ended with {ended:?}:\n{text}");
            Ok(text.contains("Stop it with Ctrl-C").then_some(text))
        });
        said.with_context(|| self.process.log_tail())
    }

    /// What it has put where temporary things are put.
    fn left(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.directory.join("temporary"))?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }
}

/// Runs a line as a person's shell would, with what was exported.
fn copied(exported: &str, line: &str, home: &Path) -> Result<String> {
    let kubectl = binaries::find_one("kubectl")?;
    let muster = Path::new(env!("CARGO_BIN_EXE_muster"));
    let directories = [kubectl.parent(), muster.parent()].into_iter().flatten();
    let known = std::env::var_os("PATH").unwrap_or_default();
    let paths = directories.map(PathBuf::from);
    let paths = std::env::join_paths(paths.chain(std::env::split_paths(&known)))?;
    let output = Command::new("sh")
        .args(["-ec", &format!("{exported}\n{line}")])
        .env("PATH", paths)
        .env("HOME", home)
        .env_remove("KUBECONFIG")
        .current_dir(home)
        .output()?;
    ensure!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The lines of a table that name something.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.contains(name));
    line.unwrap_or_default().split_whitespace().collect()
}

#[test]
fn every_command_that_it_prints_shows_what_it_promises() -> Result<()> {
    let mut demo = Demo::start(&[])?;
    let said = demo.said()?;
    ensure!(said.contains("Scanned 9 images and 7 workloads"), "{said}");
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let exported = lines.iter().find(|line| line.starts_with("export "));
    let exported = exported.context("nothing is exported")?;
    let commands: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with("kubectl ") || line.starts_with("muster "))
        .copied()
        .collect();
    let shown: Vec<String> = commands
        .iter()
        .map(|line| copied(exported, line, demo.directory.path()))
        .collect::<Result<_>>()?;
    let [workloads, images, policies, checks, harmless, who, upgrade] = shown.as_slice() else {
        anyhow::bail!("five of kubectl and two of Muster are expected: {commands:?}");
    };

    // NAMESPACE NAME KIND WORKLOAD CONTAINERS CRITICAL HIGH MEDIUM LOW AGE
    let counts = |name: &str| row(workloads, name).get(4..9).map(<[&str]>::to_vec);
    assert_eq!(
        counts("deployment-gateway"),
        Some(vec!["1/1", "0", "0", "0", "0"]),
        "{workloads}"
    );
    assert_eq!(
        counts("deployment-metrics"),
        Some(vec!["1/1", "0", "0", "0", "0"]),
        "{workloads}"
    );
    for name in [
        "deployment-storefront",
        "deployment-cart",
        "deployment-payments",
        "statefulset-cache",
        "cronjob-backup",
    ] {
        let counts = counts(name).with_context(|| format!("{name} in\n{workloads}"))?;
        assert_eq!(counts[0], "1/1", "{workloads}");
        assert!(counts[1].parse::<u32>()? > 0, "{name} in\n{workloads}");
    }
    assert!(!workloads.contains("sandbox"), "{workloads}");

    assert_eq!(images.lines().count(), 1 + 9, "{images}");
    for name in ["shop/cart:1.9.0", "linux/arm64"] {
        assert!(images.contains(name), "{name} in\n{images}");
    }
    for name in [
        "privileged-containers",
        "image-tags",
        "required-labels",
        "non-root",
    ] {
        assert!(policies.contains(name), "{name} in\n{policies}");
    }
    assert_eq!(
        row(policies, "privileged-containers").get(7),
        Some(&"1"),
        "{policies}"
    );
    for name in [
        "deployment-cart",
        "ingress-storefront",
        "service-storefront",
    ] {
        assert!(checks.contains(name), "{name} in\n{checks}");
    }
    for text in [
        "suppressed: true",
        "CVE-2023-44487",
        "status: not_affected",
        "statement: vulnerable_code_not_in_execute_path",
    ] {
        assert!(harmless.contains(text), "{text} in\n{harmless}");
    }
    for name in ["deployment/storefront", "deployment/payments", "suppressed"] {
        assert!(who.contains(name), "{name} in\n{who}");
    }
    assert!(upgrade.contains("minimist"), "{upgrade}");

    assert_eq!(demo.left()?.len(), 1, "it works in one directory");
    demo.process.signal("INT")?;
    let ended = wait::until("the end of the demonstration", STOP, || {
        demo.process.exit_status()
    })?;
    assert!(ended.success(), "{}", demo.process.log_tail());
    assert_eq!(demo.left()?, Vec::<PathBuf>::new());
    assert!(!demo.directory.join("elsewhere").exists());
    assert_eq!(
        demo.outside.askers.load(Ordering::SeqCst),
        0,
        "somebody asked another machine"
    );
    Ok(())
}

#[test]
fn a_script_waits_until_everything_is_there_and_finds_it_where_it_said() -> Result<()> {
    let place = Directory::new("demo-data")?;
    let data = place.join("data");
    let given = data.to_string_lossy().into_owned();
    let mut demo = Demo::start(&["--until-ready", "--data", &given])?;
    let ended = wait::until("the end of the demonstration", LIMIT + STOP, || {
        demo.process.exit_status()
    })?;
    let said = fs::read_to_string(demo.process.log())?;
    assert!(ended.success(), "{said}");
    assert!(said.contains("Scanned 9 images"), "{said}");
    assert!(data.join("kubeconfig").exists());
    assert_eq!(demo.left()?, Vec::<PathBuf>::new());
    assert_eq!(demo.outside.askers.load(Ordering::SeqCst), 0);
    Ok(())
}
