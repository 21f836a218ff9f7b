//! A real PostgreSQL in a directory of its own: one server for all tests of a binary, each with a
//! fresh database, or one alone for tests that kill it.

use crate::certificates::Certificates;
use crate::etcd::Durability;
use crate::port;
use crate::process::{Directory, Farewell, Process};
use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long the server may take to start or to end; recovery after a kill is part of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The superuser, who needs no password on the socket.
const SUPERUSER: &str = "postgres";
/// Who the server runs as if we are root: it refuses to be root itself.
const SERVANTS: [&str; 2] = ["postgres", "nobody"];

/// A PostgreSQL server; it ends, and its data with it, when dropped.
#[derive(Debug)]
pub struct Postgres {
    binaries: PathBuf,
    servant: Option<String>,
    durability: Durability,
    port: u16,
    authority: String,
    databases: AtomicU32,
    process: Option<Process>,
    directory: Directory,
}

impl Postgres {
    /// The server that all tests of this binary share. It loses nothing when it is killed, but may
    /// when the machine is.
    pub fn shared() -> Result<&'static Postgres> {
        static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
        SHARED
            .get_or_init(|| {
                Postgres::start(Durability::Unsynced).map_err(|error| format!("{error:#}"))
            })
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// Makes and starts a server.
    pub fn start(durability: Durability) -> Result<Postgres> {
        let binaries = binaries()?;
        let directory = Directory::new("postgres")?;
        let servant = servant()?;
        let certificates = Certificates::generate()?;
        let mut postgres = Postgres {
            binaries,
            servant,
            durability,
            port: 0,
            authority: certificates.authority.clone(),
            databases: AtomicU32::new(0),
            process: None,
            directory,
        };
        postgres.give_away(postgres.directory.path())?;
        let data = postgres.data();
        let mut initdb = postgres.command("initdb");
        initdb
            .args(["--username", SUPERUSER, "--auth-local=trust"])
            .args(["--auth-host=scram-sha-256", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "--no-instructions", "--pgdata"])
            .arg(&data);
        succeed(&mut initdb)?;
        // Whoever has a password needs it on the socket too.
        let access = format!(
            "local all {SUPERUSER} trust\nlocal all all scram-sha-256\n\
             hostssl all all 127.0.0.1/32 scram-sha-256\n"
        );
        fs::write(data.join("pg_hba.conf"), access)?;
        for (name, text) in [
            ("server.crt", &certificates.server),
            ("server.key", &certificates.server_key),
        ] {
            let file = data.join(name);
            fs::write(&file, text)?;
            postgres.give_away(&file)?;
            succeed(Command::new("chmod").arg("0600").arg(&file))?;
        }
        port::retrying(|| postgres.run())?;
        Ok(postgres)
    }

    fn run(&mut self) -> Result<()> {
        if self.port == 0 {
            self.port = port::free()?;
        }
        let synced = match self.durability {
            Durability::Synced => "on",
            Durability::Unsynced => "off",
        };
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k");
        command.arg(self.directory.path());
        for (name, value) in [
            ("port", self.port.to_string().as_str()),
            ("listen_addresses", "127.0.0.1"),
            ("max_connections", "300"),
            ("shared_buffers", "64MB"),
            ("fsync", synced),
            ("full_page_writes", synced),
            ("ssl", "on"),
            ("log_line_prefix", "%m %d "),
        ] {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let log = self.directory.join("postgres.log");
        let farewell = Farewell {
            signal: "QUIT",
            remove: Some(self.directory.path()),
        };
        let mut process = Process::guarded("postgres", &mut command, &log, &farewell)?;
        let started = wait::until("the start of PostgreSQL", PATIENCE, || {
            port::early_exit(&mut process)?;
            Ok(self.sql("postgres", "SELECT 1").is_ok().then_some(()))
        });
        if let Err(error) = started {
            self.port = 0;
            let log = process.log_tail();
            return Err(error.context(format!("the log of PostgreSQL ends:\n{log}")));
        }
        self.process = Some(process);
        Ok(())
    }

    /// The directory of the server's socket.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// The port, of the socket and on 127.0.0.1 (there only with TLS and a password).
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate authority of the server, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Where the superuser reaches a database.
    pub fn url(&self, database: &str) -> String {
        let socket = self.socket().display().to_string().replace('/', "%2F");
        format!("postgres://{SUPERUSER}@{socket}:{}/{database}", self.port)
    }

    /// Makes an empty database and gives its name.
    pub fn database(&self) -> Result<String> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// Runs statements as the superuser; gives the rows as lines, their columns apart by `|`.
    pub fn sql(&self, database: &str, statements: &str) -> Result<String> {
        let mut psql = self.psql(database);
        psql.args(["-c", statements]);
        let output = psql.output().context("cannot run psql")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statements}: {errors}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The schema and the content of a database as SQL, compressed with gzip.
    pub fn dump(&self, database: &str) -> Result<Vec<u8>> {
        let mut dump = Command::new(self.binaries.join("pg_dump"));
        dump.args(["--no-owner", "--no-privileges"]);
        dump.arg("-h").arg(self.socket());
        dump.args(["-p", &self.port.to_string(), "-U", SUPERUSER, database]);
        let output = dump.output().context("cannot run pg_dump")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pg_dump: {errors}");
        let text = String::from_utf8(output.stdout).context("pg_dump writes UTF-8")?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        // Commands of psql itself, which not every psql knows.
        let is_kept =
            |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
        for line in text.lines().filter(is_kept) {
            writeln!(packed, "{line}")?;
        }
        Ok(packed.finish()?)
    }

    /// Makes a database from [`Postgres::dump`] and gives its name.
    pub fn load(&self, dump: &[u8]) -> Result<String> {
        let mut statements = Vec::new();
        GzDecoder::new(dump).read_to_end(&mut statements)?;
        let database = self.database()?;
        let mut psql = self.psql(&database);
        psql.args(["-f", "-"]).stdin(Stdio::piped());
        psql.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = psql.spawn().context("cannot run psql")?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(&statements)?;
        }
        let output = child.wait_with_output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "loading a dump: {errors}");
        Ok(database)
    }

    /// psql as the superuser, on a database.
    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .arg("-h")
            .arg(self.socket())
            .args(["-p", &self.port.to_string()])
            .args(["-U", SUPERUSER, "-d", database]);
        psql
    }

    /// All the server has written.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(self.directory.join("postgres.log"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Ends the server with SIGKILL, as a crash does. Its children end with it.
    pub fn kill9(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill9()?;
        }
        Ok(())
    }

    /// Ends the server in order; open connections are cut.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.signal("INT")?;
            wait::until("the end of PostgreSQL", PATIENCE, || process.exit_status())?;
        }
        Ok(())
    }

    /// Starts the server again on the same data and port.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        // After a kill the children may take a moment to notice; until then the data is theirs.
        wait::until("the restart of PostgreSQL", PATIENCE, || {
            let port = self.port;
            match self.run() {
                Ok(()) => Ok(Some(())),
                Err(error) if format!("{error:#}").contains("still in use") => {
                    self.port = port;
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Starts the server again as a standby, which takes no writes until `pg_promote()` is called;
    /// then it has taken over, as after a failure of another server.
    pub fn restart_as_standby(&mut self) -> Result<()> {
        self.stop()?;
        let signal = self.data().join("standby.signal");
        fs::write(&signal, "")?;
        self.give_away(&signal)?;
        self.restart()
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// A program of the server, run as who may run it.
    fn command(&self, name: &str) -> Command {
        let program = self.binaries.join(name);
        match &self.servant {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command
                    .args(["--reuid", user, "--regid", user, "--clear-groups", "--"])
                    .arg(program)
                    .current_dir("/");
                command
            }
        }
    }

    fn give_away(&self, path: &Path) -> Result<()> {
        match &self.servant {
            None => Ok(()),
            Some(user) => succeed(Command::new("chown").arg(user).arg(path)),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its children must be gone before its directory goes.
        let _ = self.stop();
    }
}

/// The user to run as, if we are root.
fn servant() -> Result<Option<String>> {
    let id = Command::new("id").arg("-u").output()?;
    if id.stdout.trim_ascii() != b"0" {
        return Ok(None);
    }
    for user in SERVANTS {
        // Its group must have the same name.
        let group = Command::new("id").args(["-gn", user]).output()?;
        if group.status.success() && group.stdout.trim_ascii() == user.as_bytes() {
            return Ok(Some(user.into()));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user named postgres")
}

/// Where the programs are: Debian keeps those of the server out of `PATH`.
fn binaries() -> Result<PathBuf> {
    let all = |directory: &Path| {
        let programs = ["initdb", "postgres", "psql"];
        programs.iter().all(|name| directory.join(name).is_file())
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let version = |directory: &PathBuf| -> Option<u32> {
        directory.parent()?.file_name()?.to_str()?.parse().ok()
    };
    let mut installed: Vec<PathBuf> = match fs::read_dir("/usr/lib/postgresql") {
        Err(_) => Vec::new(),
        Ok(entries) => entries
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .collect(),
    };
    installed.sort_by_key(version);
    let found = std::env::split_paths(&path)
        .chain(installed.into_iter().rev())
        .find(|directory| all(directory));
    found.context("PostgreSQL is not installed: install the package postgresql")
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {text}");
    Ok(())
}
