//! A real OCI registry: Debian's `docker-registry` on a private port and a fresh directory. The
//! package's own service is not used.

use crate::binaries::find_program;
use crate::certificates::Certificates;
use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long the registry may take to listen.
const START: Duration = Duration::from_secs(30);

/// Who may log in where a password is required.
pub const USERNAME: &str = "scanner";
/// The password.
pub const PASSWORD: &str = "correct horse";
/// The same pair as `htpasswd -B` writes it, with the least work, because it is checked again
/// with every request.
const HTPASSWD: &str = "scanner:$2b$04$dkEep4LglAFyir67EQFLoeelDyEUvBlB7TqsNdFkqD15JhJFblOPm\n";

/// Who is let in.
#[derive(Clone, Debug, Default)]
pub enum Login {
    /// Everybody.
    #[default]
    Anybody,
    /// Who knows [`USERNAME`] and [`PASSWORD`].
    Password,
    /// Who has a token of a service (see [`crate::token`]).
    Token {
        /// Where tokens are had.
        realm: String,
        /// The certificate that the service's tokens are signed under, in PEM.
        certificate: String,
    },
}

/// How the registry is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Whether it speaks TLS, under an authority of its own.
    pub tls: bool,
    /// Who is let in.
    pub login: Login,
}

/// A running registry; it ends when dropped.
#[derive(Debug)]
pub struct Registry {
    process: Process,
    port: u16,
    authority: Option<String>,
    setup: Setup,
    directory: Directory,
}

impl Registry {
    /// Starts one that speaks plain HTTP and lets everybody in.
    pub fn start() -> Result<Registry> {
        Registry::start_with(Setup::default())
    }

    /// Starts one as it is wanted.
    pub fn start_with(setup: Setup) -> Result<Registry> {
        port::retrying(|| Registry::attempt(&setup))
    }

    fn attempt(setup: &Setup) -> Result<Registry> {
        let directory = Directory::new("registry")?;
        let port = port::free()?;
        let authority = match setup.tls {
            false => None,
            true => {
                let certificates = Certificates::generate()?;
                fs::write(directory.join("server.crt"), &certificates.server)?;
                fs::write(directory.join("server.key"), &certificates.server_key)?;
                Some(certificates.authority)
            }
        };
        fs::write(directory.join("htpasswd"), HTPASSWD)?;
        if let Login::Token { certificate, .. } = &setup.login {
            fs::write(directory.join("token.crt"), certificate)?;
        }
        let text = configuration(directory.path(), port, setup);
        fs::write(directory.join("config.yml"), text)?;
        let process = launch(&directory, port)?;
        Ok(Registry {
            process,
            port,
            authority,
            setup: setup.clone(),
            directory,
        })
    }

    /// Its host and port, as references spell it.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        let scheme = if self.setup.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.host())
    }

    /// The authority that signed its certificate, in PEM, if it speaks TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Who is let in.
    pub fn login(&self) -> &Login {
        &self.setup.login
    }

    /// Kills it as a power cut would.
    pub fn kill9(&mut self) -> Result<()> {
        self.process.kill9().map(drop)
    }

    /// Starts it again where it was, on the same content.
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

    /// The directory that holds its content, for tests that damage it.
    pub fn storage(&self) -> std::path::PathBuf {
        self.directory.join("data")
    }
}

fn launch(directory: &Directory, port: u16) -> Result<Process> {
    let binary = find_program("docker-registry", "docker-registry")?;
    let mut command = Command::new(binary);
    command.arg("serve").arg(directory.join("config.yml"));
    // Settings of the environment would override the file's.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("REGISTRY_")) {
        command.env_remove(name);
    }
    let log = directory.join("registry.log");
    let mut process = Process::start("docker-registry", &mut command, &log)?;
    wait::until("the start of docker-registry", START, || {
        port::early_exit(&mut process)?;
        Ok(TcpStream::connect(("127.0.0.1", port)).ok())
    })
    .with_context(|| format!("the log of docker-registry ends:\n{}", process.log_tail()))?;
    Ok(process)
}

fn configuration(directory: &Path, port: u16, setup: &Setup) -> String {
    let home = directory.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: true}}}}\n\
         storage:\n  filesystem: {{rootdirectory: {home}/data}}\n  delete: {{enabled: true}}\n\
         http:\n  addr: 127.0.0.1:{port}\n  secret: none\n"
    );
    if setup.tls {
        text += &format!("  tls: {{certificate: {home}/server.crt, key: {home}/server.key}}\n");
    }
    match &setup.login {
        Login::Anybody => {}
        Login::Password => {
            text += &format!("auth:\n  htpasswd: {{realm: test, path: {home}/htpasswd}}\n");
        }
        Login::Token { realm, .. } => {
            text += &format!(
                "auth:\n  token: {{realm: \"{realm}\", service: registry, issuer: muster, \
                 rootcertbundle: {home}/token.crt}}\n"
            );
        }
    }
    text
}
