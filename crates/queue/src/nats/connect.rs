//! The connection to NATS: where, as whom, under which authorities. What is secret is not printed.

use crate::queue::QueueError;
use async_nats::{Client, ConnectOptions};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Who connects.
#[derive(Clone, Default)]
pub enum Authentication {
    /// Nobody in particular.
    #[default]
    None,
    /// A user with a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// Whoever has this token.
    Token(String),
    /// The holder of a credentials file, as NATS' own tools write it.
    CredentialsFile(PathBuf),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Authentication::None => "None",
            Authentication::Password { .. } => "Password(secret)",
            Authentication::Token(_) => "Token(secret)",
            Authentication::CredentialsFile(_) => "CredentialsFile",
        })
    }
}

/// How NATS is reached and used.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The servers, such as `nats://nats:4222`. Logins do not belong in here.
    pub servers: Vec<String>,
    /// Who connects.
    pub authentication: Authentication,
    /// Whether nothing goes without TLS.
    pub require_tls: bool,
    /// A file of certificate authorities beside the system's, in PEM.
    pub authorities: Option<PathBuf>,
    /// The files of a client certificate and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The first word of our subjects and of the streams' names.
    pub prefix: String,
    /// On how many servers of a cluster each message is kept.
    pub replicas: usize,
}

impl NatsOptions {
    /// One server with nothing special.
    pub fn new(server: impl Into<String>) -> NatsOptions {
        NatsOptions {
            servers: vec![server.into()],
            authentication: Authentication::None,
            require_tls: false,
            authorities: None,
            certificate: None,
            prefix: "muster".into(),
            replicas: 1,
        }
    }
}

/// Connects as the options say, and as `adapt` says beyond them. The connection is kept: when it
/// breaks it is made again, for ever unless `adapt` says otherwise.
pub(crate) async fn connect(
    options: &NatsOptions,
    adapt: impl FnOnce(ConnectOptions) -> ConnectOptions,
) -> Result<Client, QueueError> {
    let attempt = format!("connecting to NATS at {}", options.servers.join(", "));
    let unusable = |reason: String| QueueError::Unusable {
        attempt: attempt.clone(),
        reason,
    };
    if options.servers.iter().any(|server| server.contains('@')) {
        // Not repeated: that would print it.
        let attempt = "connecting to NATS".into();
        let reason = "a login does not belong in a server's address".into();
        return Err(QueueError::Unusable { attempt, reason });
    }
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if options.prefix.is_empty() || !options.prefix.bytes().all(word) {
        return Err(unusable(format!(
            "{:?} cannot be the first word of subjects",
            options.prefix
        )));
    }
    let mut wanted = match &options.authentication {
        Authentication::None => ConnectOptions::new(),
        Authentication::Password { user, password } => {
            ConnectOptions::with_user_and_password(user.clone(), password.clone())
        }
        Authentication::Token(token) => ConnectOptions::with_token(token.clone()),
        Authentication::CredentialsFile(path) => ConnectOptions::with_credentials_file(path)
            .await
            .map_err(|error| {
                unusable(format!("the credentials file {}: {error}", path.display()))
            })?,
    };
    wanted = wanted
        .name("muster")
        .require_tls(options.require_tls)
        .connection_timeout(Duration::from_secs(10))
        .request_timeout(Some(Duration::from_secs(10)))
        .max_reconnects(None)
        .event_callback(|event| async move { tracing::info!(%event, "nats") });
    if let Some(authorities) = &options.authorities {
        wanted = wanted.add_root_certificates(authorities.clone());
    }
    if let Some((certificate, key)) = &options.certificate {
        wanted = wanted.add_client_certificate(certificate.clone(), key.clone());
    }
    adapt(wanted)
        .connect(&options.servers)
        .await
        .map_err(|error| QueueError::unavailable(&attempt, error))
}
