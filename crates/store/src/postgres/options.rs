//! Where the database is, who asks, and how long anything may take.

use super::open::OpenError;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// How the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not at all.
    Disable,
    /// Encrypted if the server can; nobody is sure who it is.
    Prefer,
    /// Encrypted; nobody is sure who it is.
    Require,
    /// Encrypted, to a server whose certificate one of the authorities has signed.
    VerifyCa,
    /// And whose certificate names the host.
    VerifyFull,
}

/// How a database is reached. [`Options::from_url`] and [`Options::from_parts`] make it; the
/// fields are then set as needed.
#[derive(Clone)]
pub struct Options {
    target: PgConnectOptions,
    /// A file whose trimmed content is the password. It is read anew for every connection, so a
    /// password may be rotated while the process runs.
    pub password_file: Option<PathBuf>,
    /// How many connections are open at most. At most half of them wait for their turn to write.
    pub max_connections: u32,
    /// How long connecting may take, and how long a request waits for a connection to be free.
    pub connect_timeout: Duration,
    /// How long one statement may run.
    pub statement_timeout: Duration,
    /// How long one statement may wait for a lock.
    pub lock_timeout: Duration,
    /// How often the clocks are looked at for writes of other processes.
    pub poll: Duration,
    /// How long a blob that nothing refers to is kept.
    pub blob_idle: Duration,
}

impl Options {
    /// The database that `postgres://user:password@host:port/database?sslmode=verify-full` names;
    /// `host` may also be given in the query, as the directory of a Unix socket.
    pub fn from_url(url: &str) -> Result<Self, OpenError> {
        // Of `user:password@host` the parser would take the password for something to show.
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(OpenError::Url);
        }
        // The parser's own message may repeat the URL, and the URL may hold the password.
        let target = PgConnectOptions::from_str(url).map_err(|_| OpenError::Url)?;
        Ok(Options::new(target))
    }

    /// The database of this name at this host (or directory of a Unix socket).
    pub fn from_parts(host: &str, port: u16, database: &str, user: &str) -> Self {
        let target = PgConnectOptions::new_without_pgpass()
            .port(port)
            .database(database)
            .username(user);
        Options::new(match host.starts_with('/') {
            true => target.socket(host),
            false => target.host(host),
        })
    }

    fn new(target: PgConnectOptions) -> Self {
        Options {
            target: target
                .application_name("muster")
                .disable_statement_logging(),
            password_file: None,
            max_connections: 16,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            poll: Duration::from_millis(200),
            blob_idle: Duration::from_secs(3600),
        }
    }

    /// With this password, unless a file has it.
    pub fn password(mut self, password: &str) -> Self {
        self.target = self.target.password(password);
        self
    }

    /// Protected like this; the authorities of `ca_file` are trusted beside the system's own.
    pub fn tls(mut self, tls: Tls, ca_file: Option<&Path>) -> Self {
        self.target = self.target.ssl_mode(match tls {
            Tls::Disable => PgSslMode::Disable,
            Tls::Prefer => PgSslMode::Prefer,
            Tls::Require => PgSslMode::Require,
            Tls::VerifyCa => PgSslMode::VerifyCa,
            Tls::VerifyFull => PgSslMode::VerifyFull,
        });
        if let Some(file) = ca_file {
            self.target = self.target.ssl_root_cert(file);
        }
        self
    }

    /// Where the database is, without any secret.
    pub(super) fn place(&self) -> String {
        let database = self.target.get_database().unwrap_or("(default)");
        match self.target.get_socket() {
            Some(socket) => format!("{database} at {}", socket.display()),
            None => format!(
                "{database} at {}:{}",
                self.target.get_host(),
                self.target.get_port()
            ),
        }
    }

    /// How to connect now, with the password as it is now.
    pub(super) async fn target(&self) -> Result<PgConnectOptions, sqlx::Error> {
        let Some(file) = &self.password_file else {
            return Ok(self.target.clone());
        };
        let password = tokio::fs::read_to_string(file).await.map_err(|error| {
            let text = format!("reading the password file {}: {error}", file.display());
            std::io::Error::new(error.kind(), text)
        })?;
        Ok(self
            .target
            .clone()
            .password(password.trim_end_matches(['\r', '\n'])))
    }

    /// Longer than anything that is asked of the database may take.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout * 3 + self.statement_timeout * 2
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("database", &self.place())
            .field("password_file", &self.password_file)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}
