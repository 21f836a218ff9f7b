//! The images that are compared: package databases of this machine, of real tools, or made up
//! where no tool is to be had, each with the streams of advisories that may or may not be about
//! them.

use super::rpm;
use super::run;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A root file system, and what its advisories are filed under.
pub(crate) struct Image {
    pub name: &'static str,
    /// Streams, the right ones and some beside them, and the short name of their source.
    pub streams: Vec<(String, String)>,
    /// How versions look, for advisories to be made of them.
    pub versions: Versions,
    files: Vec<(String, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    Dpkg,
    Apk,
    Rpm,
    Language,
}

impl Image {
    fn new(name: &'static str, versions: Versions, streams: &[(&str, &str)]) -> Self {
        let owned = |(stream, source): &(&str, &str)| ((*stream).to_owned(), (*source).to_owned());
        Image {
            name,
            streams: streams.iter().map(owned).collect(),
            versions,
            files: Vec::new(),
        }
    }

    fn with(mut self, path: &str, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), contents.into()));
        self
    }

    /// Writes the files into a directory.
    pub fn write(&self, root: &Path) -> Result<()> {
        for (path, contents) in &self.files {
            let place = root.join(path);
            let parent = place.parent().context("a file has a directory")?;
            fs::create_dir_all(parent)?;
            fs::write(&place, contents)?;
            if contents.starts_with(b"\x7fELF") {
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }
}

fn release(id: &str, version: &str) -> String {
    format!("ID={id}\nNAME={id}\nVERSION_ID={version}\n")
}

/// All images; `work` is where tools may leave files.
pub(crate) fn all(work: &Path) -> Result<Vec<Image>> {
    let status = fs::read("/var/lib/dpkg/status").context("the machine has no Debian packages")?;
    let mut images = vec![
        Image::new(
            "debian",
            Versions::Dpkg,
            &[
                ("debian 12", "debian"),
                ("debian 12.7", "debian"),
                ("debian 11", "debian"),
            ],
        )
        .with("etc/debian_version", "12.7\n")
        .with("etc/os-release", release("debian", "12"))
        .with("var/lib/dpkg/status", status.clone()),
        Image::new(
            "ubuntu",
            Versions::Dpkg,
            &[
                ("ubuntu 24.04", "ubuntu"),
                ("ubuntu 24.04-ESM", "ubuntu"),
                ("debian 12", "debian"),
            ],
        )
        .with(
            "etc/lsb-release",
            "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\n",
        )
        .with("etc/os-release", release("ubuntu", "24.04"))
        .with(
            "var/lib/ubuntu-advantage/status.json",
            r#"{"services": [{"name": "esm-infra", "status": "enabled"}]}"#,
        )
        .with("var/lib/dpkg/status", status),
    ];
    let installed = apk();
    for (name, id, version, streams) in [
        (
            "alpine",
            "alpine",
            "3.20.3",
            vec![("alpine 3.20", "alpine"), ("alpine edge", "alpine")],
        ),
        (
            "alpine-edge",
            "alpine",
            "3.21.0",
            vec![("alpine 3.21", "alpine"), ("alpine edge", "alpine")],
        ),
        (
            "wolfi",
            "wolfi",
            "20230201",
            vec![("wolfi", "wolfi"), ("chainguard", "chainguard")],
        ),
        (
            "chainguard",
            "chainguard",
            "20230214",
            vec![("wolfi", "wolfi"), ("chainguard", "chainguard")],
        ),
        (
            "minimos",
            "minimos",
            "20240101",
            vec![("minimos", "minimos")],
        ),
    ] {
        let mut image = Image::new(name, Versions::Apk, &streams)
            .with("etc/os-release", release(id, version))
            .with("lib/apk/db/installed", installed.clone());
        if id == "alpine" {
            image = image.with("etc/alpine-release", format!("{version}\n"));
        }
        if name == "alpine-edge" {
            image = image.with(
                "etc/apk/repositories",
                "https://dl-cdn.alpinelinux.org/alpine/edge/main\n",
            );
        }
        images.push(image);
    }
    let database = rpm::database(work)?;
    for (name, id, version, streams) in [
        (
            "alma",
            "almalinux",
            "9.4",
            vec![("alma 9", "alma"), ("alma 9.4", "alma")],
        ),
        ("rocky", "rocky", "9.4", vec![("rocky 9", "rocky")]),
        (
            "oracle",
            "ol",
            "9.4",
            vec![("Oracle Linux 9", "oracle-oval")],
        ),
        (
            "amazon",
            "amzn",
            "2023",
            vec![
                ("amazon linux 2023", "amazon"),
                ("amazon linux 1", "amazon"),
            ],
        ),
        (
            "suse",
            "sles",
            "15.5",
            vec![
                ("SUSE Linux Enterprise 15.5", "suse-cvrf"),
                ("SUSE Linux Enterprise 15", "suse-cvrf"),
            ],
        ),
        (
            "leap",
            "opensuse-leap",
            "15.6",
            vec![("openSUSE Leap 15.6", "suse-cvrf")],
        ),
        (
            "tumbleweed",
            "opensuse-tumbleweed",
            "20240101",
            vec![("openSUSE Tumbleweed", "suse-cvrf")],
        ),
        ("photon", "photon", "5.0", vec![("Photon OS 5.0", "photon")]),
        (
            "azure",
            "azurelinux",
            "3.0",
            vec![("Azure Linux 3.0", "azure")],
        ),
        (
            "mariner",
            "mariner",
            "2.0.20240101",
            vec![("CBL-Mariner 2.0", "cbl-mariner")],
        ),
        ("redhat", "rhel", "9.4", vec![("Red Hat", "redhat")]),
    ] {
        let image = Image::new(name, Versions::Rpm, &streams)
            .with("etc/os-release", release(id, version))
            .with("var/lib/rpm/rpmdb.sqlite", database.clone());
        images.push(match name {
            // Trivy knows it by this file alone.
            "amazon" => image.with(
                "etc/system-release",
                "Amazon Linux release 2023 (Amazon Linux)\n",
            ),
            _ => image,
        });
    }
    images.push(languages()?);
    Ok(images)
}

/// Packages as Alpine's aports have them: versions of every shape, several packages of a source.
fn apk() -> String {
    let mut text = String::new();
    for (name, origin, version) in [
        ("musl", "musl", "1.2.5-r0"),
        ("busybox", "busybox", "1.36.1-r29"),
        ("ssl_client", "busybox", "1.36.1-r29"),
        ("libcrypto3", "openssl", "3.3.2-r0"),
        ("libssl3", "openssl", "3.3.2-r0"),
        ("zlib", "zlib", "1.3.1-r1"),
        ("apk-tools", "apk-tools", "2.14.4-r0"),
        ("sqlite-libs", "sqlite", "3.45.3-r1"),
        ("tzdata", "tzdata", "2024a-r1"),
        ("ca-certificates", "ca-certificates", "20240705-r0"),
        ("libgcc", "gcc", "13.2.1_git20240309-r0"),
        ("readline", "readline", "8.2.10-r0"),
        ("ncurses-terminfo-base", "ncurses", "6.4_p20240420-r0"),
        ("libexpat", "expat", "2.6.0_rc1-r2"),
        ("openssh-keygen", "openssh", "9.7_p1-r4"),
        ("scanelf", "pax-utils", "1.3.7-r2"),
    ] {
        text += &format!(
            "C:Q1qKcZ+j23xssAXmgQhkOO8dHnbWw=\nP:{name}\nV:{version}\nA:x86_64\nS:1\nI:1\nT:{name}\nU:https://example.org\nL:MIT\no:{origin}\nm:Somebody <somebody@example.org>\nt:1\nc:1\n\n"
        );
    }
    text
}

/// Packages of every language, mostly those that this machine's tools have brought.
fn languages() -> Result<Image> {
    let mut streams = Vec::new();
    for (stream, source) in [
        ("npm::GitHub Security Advisory Npm", "ghsa"),
        (
            "npm::Node.js Ecosystem Security Working Group",
            "nodejs-security-wg",
        ),
        ("pip::GitHub Security Advisory Pip", "ghsa"),
        ("rubygems::Ruby Advisory Database", "ruby-advisory-db"),
        ("go::GitHub Security Advisory Go", "ghsa"),
        ("go::The Go Vulnerability Database", "govulndb"),
        ("maven::GitHub Security Advisory Maven", "ghsa"),
        ("composer::GitHub Security Advisory Composer", "ghsa"),
        ("nuget::GitHub Security Advisory Nuget", "ghsa"),
    ] {
        streams.push((stream, source));
    }
    let mut image = Image::new("languages", Versions::Language, &streams);
    for (pattern, below, limit) in [
        ("/usr/share/nodejs -name package.json", "app/node", 400),
        (
            "/usr/lib/python3/dist-packages -name METADATA",
            "app/python",
            200,
        ),
        (
            "/usr/share/rubygems-integration -name *.gemspec -path */specifications/*",
            "app/ruby",
            100,
        ),
        (
            "/usr/share/java /usr/share/maven-repo -name *.jar -type f",
            "app/java",
            40,
        ),
    ] {
        let found = Command::new("find").args(pattern.split(' ')).output()?;
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let mut paths: Vec<&str> = found.lines().collect();
        paths.sort_unstable();
        for path in paths.into_iter().take(limit) {
            image = image.with(&format!("{below}{path}"), fs::read(path)?);
        }
    }
    for program in ["/usr/bin/etcd", "/usr/bin/docker-registry"] {
        if let Ok(bytes) = fs::read(program) {
            image = image.with(&format!("app/go{program}"), bytes);
        }
    }
    let packages = [
        ("symfony/http-kernel", "v4.4.12"),
        ("monolog/monolog", "2.0.0-RC1"),
        ("guzzlehttp/Psr7", "1.8.2"),
        ("twig/twig", "v1.44.0"),
    ];
    let listed: Vec<_> = packages
        .iter()
        .map(|(name, version)| json!({"name": name, "version": version, "license": ["MIT"]}))
        .collect();
    let listed = json!({ "packages": listed }).to_string();
    image = image.with("app/php/vendor/composer/installed.json", listed);
    let mut libraries = json!({});
    for (name, version) in [
        ("Newtonsoft.Json", "12.0.3"),
        ("System.Text.Json", "6.0.0-rc.1"),
        ("A.B", "1.2.3.4"),
    ] {
        libraries[format!("{name}/{version}")] =
            json!({"type": "package", "serviceable": true, "sha512": ""});
    }
    let program = json!({"runtimeTarget": {"name": ".NETCoreApp,Version=v6.0", "signature": ""},
        "targets": {".NETCoreApp,Version=v6.0": {}}, "libraries": libraries});
    Ok(image.with("app/net/app.deps.json", program.to_string()))
}

/// The list of Java archives that Trivy wants to have, with none in it.
pub(crate) fn java_database(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    let script = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute('create table artifacts(id integer primary key, group_id text, artifact_id text)')
database.execute('create table indices(artifact_id integer, version text, sha1 blob, archive_type text)')
database.commit()
";
    let file = directory.join("trivy-java.db");
    run(Command::new("python3").args(["-c", script]).arg(file))?;
    let about = json!({"Version": 1, "NextUpdate": "2100-01-01T00:00:00Z",
        "UpdatedAt": "2026-01-02T00:00:00Z", "DownloadedAt": "2026-01-02T00:00:00Z"});
    Ok(fs::write(
        directory.join("metadata.json"),
        about.to_string(),
    )?)
}
