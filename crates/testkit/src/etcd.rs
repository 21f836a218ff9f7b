//! One etcd on private ports.

use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long etcd may take to answer.
const START: Duration = Duration::from_secs(30);

/// How often etcd reports its progress to watchers.
const PROGRESS: &str = "100ms";

/// Whether acknowledged writes survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every write is flushed to the disk, as in production: what a bench compares with.
    Synced,
    /// Nothing is flushed: quicker where only behaviour matters.
    Unsynced,
}

/// A running etcd; it ends when dropped.
#[derive(Debug)]
pub struct Etcd {
    process: Process,
    url: String,
    _directory: Directory,
}

impl Etcd {
    /// Starts the given binary on a fresh data directory.
    pub fn start(binary: &Path, durability: Durability) -> Result<Etcd> {
        port::retrying(|| Etcd::attempt(binary, durability))
    }

    fn attempt(binary: &Path, durability: Durability) -> Result<Etcd> {
        let directory = Directory::new("etcd")?;
        let client_port = port::free()?;
        let client = format!("http://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{}", port::free()?);
        let mut command = Command::new(binary);
        command
            .arg("--data-dir")
            .arg(directory.join("data"))
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("default={peer}")])
            // An etcd older than 3.4.31 does not report its progress when asked, and without
            // reports kube-apiserver answers watches without a resourceVersion with a timeout.
            .args(["--experimental-watch-progress-notify-interval", PROGRESS]);
        if durability == Durability::Unsynced {
            command.arg("--unsafe-no-fsync");
        }
        let mut process = Process::start("etcd", &mut command, &directory.join("etcd.log"))?;
        wait::until("the start of etcd", START, || {
            port::early_exit(&mut process)?;
            Ok(is_healthy(client_port).then_some(()))
        })
        .with_context(|| format!("the log of etcd ends:\n{}", process.log_tail()))?;
        Ok(Etcd {
            process,
            url: client,
            _directory: directory,
        })
    }

    /// Where clients reach it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process, for its memory and its log.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// etcd says on its plain-text health page whether it has a leader.
fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
