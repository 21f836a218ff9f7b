//! A VEX hub as one is published, served by a plain file server of this machine: it says that
//! CVE-2024-0001 does no harm in Debian's libssl3.

use anyhow::{Context, Result, ensure};
use muster_testkit::process::Process;
use muster_testkit::{port, wait};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Hub {
    pub(crate) address: String,
    server: Process,
    _files: TempDir,
}

impl Hub {
    pub(crate) fn start() -> Result<Hub> {
        let directory = tempfile::tempdir()?;
        let files = directory.path().join("files");
        let port = port::free()?;
        let address = format!("http://127.0.0.1:{port}");
        let write = |path: &str, contents: Value| -> Result<()> {
            let path = files.join(path);
            fs::create_dir_all(path.parent().context("a directory")?)?;
            Ok(fs::write(path, contents.to_string())?)
        };
        let archive = json!([{"url": format!("{address}/archive.tar.gz")}]);
        let version =
            json!({"spec_version": "0.1", "update_interval": "24h", "locations": archive});
        write(
            ".well-known/vex-repository.json",
            json!({"name": "hub", "versions": [version]}),
        )?;
        let entry = json!({"id": "pkg:deb/debian/libssl3", "location": "pkg/libssl3.json"});
        write(
            "index.json",
            json!({"updated_at": "2026-01-01T00:00:00Z", "packages": [entry]}),
        )?;
        write("pkg/libssl3.json", statement())?;
        let packed = Command::new("tar")
            .args(["-czf", "archive.tar.gz", "index.json", "pkg"])
            .current_dir(&files)
            .status()?;
        ensure!(packed.success(), "tar failed");
        let mut command = Command::new("python3");
        command
            .args(["-m", "http.server", "--bind", "127.0.0.1"])
            .arg(port.to_string())
            .current_dir(&files);
        let log = directory.path().join("server.log");
        let server = Process::start("a file server", &mut command, &log)?;
        wait::until("the file server answers", Duration::from_secs(30), || {
            Ok(TcpStream::connect(("127.0.0.1", port)).ok())
        })?;
        Ok(Hub {
            address,
            server,
            _files: directory,
        })
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        self.server.kill9().map(drop)
    }
}

pub(crate) fn statement() -> Value {
    json!({
        "@context": "https://openvex.dev/ns/v0.2.0", "@id": "https://example.org/vex/1",
        "author": "somebody", "timestamp": "2026-01-01T00:00:00Z", "version": 1,
        "statements": [{
            "vulnerability": {"name": "CVE-2024-0001"},
            "products": [{"@id": "pkg:deb/debian/libssl3"}],
            "status": "not_affected", "justification": "vulnerable_code_not_in_execute_path",
        }],
    })
}
