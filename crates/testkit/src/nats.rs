//! A real NATS server with JetStream, on a private port and a fresh directory. Debian's package
//! has it; the package's own service is not used.

use crate::binaries::find_program;
use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use std::io::Read;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// How long the server may take to greet.
const START: Duration = Duration::from_secs(30);

/// A running NATS server; it ends when dropped.
#[derive(Debug)]
pub struct Nats {
    process: Process,
    port: u16,
    directory: Directory,
}

impl Nats {
    /// Starts one.
    pub fn start() -> Result<Nats> {
        port::retrying(|| {
            let directory = Directory::new("nats")?;
            let port = port::free()?;
            let process = launch(&directory, port)?;
            Ok(Nats {
                process,
                port,
                directory,
            })
        })
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it as a power cut would.
    pub fn kill9(&mut self) -> Result<()> {
        self.process.kill9().map(drop)
    }

    /// Starts it again where it was, on the same data. What still runs is killed first.
    pub fn restart(&mut self) -> Result<()> {
        if self.process.exit_status()?.is_none() {
            self.process.kill9()?;
        }
        self.process = launch(&self.directory, self.port)?;
        Ok(())
    }

    /// The process, for its signals, its memory and its log.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn launch(directory: &Directory, port: u16) -> Result<Process> {
    let binary = find_program("nats-server", "nats-server")?;
    let mut command = Command::new(binary);
    command
        .args([
            "--addr",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--jetstream",
        ])
        .arg("--store_dir")
        .arg(directory.join("data"));
    let mut process = Process::start("nats-server", &mut command, &directory.join("nats.log"))?;
    wait::until("the start of nats-server", START, || {
        port::early_exit(&mut process)?;
        Ok(greets(port).then_some(()))
    })
    .with_context(|| format!("the log of nats-server ends:\n{}", process.log_tail()))?;
    Ok(process)
}

/// A server greets whoever connects, and says whether it has JetStream.
fn greets(port: u16) -> bool {
    let listen = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut greeting = [0; 4096];
        let size = stream.read(&mut greeting)?;
        Ok(String::from_utf8_lossy(greeting.get(..size).unwrap_or_default()).into_owned())
    };
    listen().is_ok_and(|greeting| {
        greeting.starts_with("INFO") && greeting.contains("\"jetstream\":true")
    })
}
