//! What the tests need on a machine beside Rust: Debian packages, Python's Kubernetes client, and
//! Kubernetes itself, which is built once. Nothing of it enters the checkout.

use crate::run::run;
use anyhow::{Context, Result, bail};
use muster_testkit::binaries;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Debian packages and the command that works only where each is installed. Debian's Python comes
/// without the means to make an environment; those are a package of their own.
const PACKAGES: &[(&str, &[&str])] = &[
    ("etcd-server", &["etcd", "--version"]),
    ("python3-venv", &["python3", "-c", "import ensurepip, venv"]),
    ("procps", &["pgrep", "--version"]),
    // A real Debian to scan.
    ("debootstrap", &["test", "-x", "/usr/sbin/debootstrap"]),
    // Debian keeps the server out of PATH; the tests start their own and need none that runs.
    (
        "postgresql",
        &[
            "sh",
            "-c",
            "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb",
        ],
    ),
    ("docker-registry", &["docker-registry", "--version"]),
    // Debian keeps it where only an administrator's PATH leads; the test kit looks there too.
    (
        "nats-server",
        &["sh", "-c", "PATH=$PATH:/usr/sbin nats-server --version"],
    ),
    // The pages are looked at as people do.
    ("chromium", &["chromium", "--version"]),
    ("chromium-driver", &["chromedriver", "--version"]),
    // Versions of packages are compared as these tools compare them.
    ("nodejs", &["node", "--version"]),
    ("npm", &["npm", "--version"]),
    ("rpm", &["rpm", "--version"]),
    ("ruby", &["ruby", "--version"]),
    ("php-cli", &["php", "--version"]),
    (
        "php-composer-semver",
        &["php", "-r", "require 'Composer/Semver/autoload.php';"],
    ),
    ("default-jdk-headless", &["javac", "-version"]),
    (
        "libmaven3-core-java",
        &["test", "-e", "/usr/share/java/maven-artifact-3.x.jar"],
    ),
];

/// The third family of clients, beside kubectl and kube-rs.
const PYTHON_CLIENT: &str = "kubernetes==36.0.2";

/// Installs what is missing, or says what to install.
pub(crate) fn packages() -> Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, command)| !works(command))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|out| out.stdout == b"0\n");
    if !root || !works(&["apt-get", "--version"]) {
        bail!("the tests need more programs; install them first:\n\n  apt-get install {list}");
    }
    run("apt-get", &["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(missing);
    run("apt-get", &arguments)
}

fn works(command: &[&str]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Python with its Kubernetes client, in our cache; returns the interpreter.
pub(crate) fn python() -> Result<PathBuf> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let home = cache.join("python");
    let (interpreter, stamp) = (home.join("bin/python3"), home.join(PYTHON_CLIENT));
    if !stamp.exists() {
        let path = home.to_string_lossy();
        run("python3", &["-m", "venv", "--clear", &path])?;
        let program = interpreter.to_string_lossy();
        run(
            &program,
            &["-m", "pip", "install", "--quiet", PYTHON_CLIENT],
        )?;
        std::fs::write(&stamp, "").context("remembering that the client is installed")?;
    }
    Ok(interpreter)
}
