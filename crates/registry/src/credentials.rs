//! Logins, from docker configurations: the bytes of a pull secret, or the user's own file with
//! its credential helpers. Keys are matched as Kubernetes does it: a host, perhaps with `*` for
//! whole labels, and perhaps a path that the repository must start with. A secret is never
//! printed: its debug form is a placeholder.

use crate::error::Error;
use crate::helper::{Helper, Helpers};
use crate::reference::Host;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The largest docker configuration that is read.
const LARGEST: usize = 1 << 20;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// How to say who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// A name and a password.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token to be exchanged for others at the registry's token service.
    Identity(Secret),
    /// A token that goes to the registry as it is.
    Bearer(Secret),
}

/// Where logins come from. The order counts: the most specific key first, then the source that
/// was added first.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    entries: Vec<Entry>,
    helpers: Helpers,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    login: Login,
}

/// The key of an entry: which hosts and repositories it is for.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    host: String,
    path: String,
}

#[derive(Deserialize)]
struct File {
    auths: Option<BTreeMap<String, RawEntry>>,
    #[serde(rename = "credHelpers")]
    helpers: Option<BTreeMap<String, String>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawEntry {
    auth: Option<Secret>,
    username: Option<String>,
    password: Option<Secret>,
    identitytoken: Option<Secret>,
    registrytoken: Option<Secret>,
}

impl Credentials {
    /// No logins: everything is asked anonymously.
    pub fn none() -> Credentials {
        Credentials::default()
    }

    /// The logins of a pull secret (`.dockerconfigjson`, or the older `.dockercfg`). Helpers that
    /// it names are not run: a secret of a cluster may not start programs here.
    pub fn from_secret(bytes: &[u8]) -> Result<Credentials, Error> {
        let file = parse("reading the docker configuration of a secret", bytes)?;
        Credentials::from_parsed("reading the docker configuration of a secret", file, false)
    }

    /// The logins of a docker configuration file, with its credential helpers.
    pub fn from_file(path: &Path) -> Result<Credentials, Error> {
        let attempt = format!("reading the docker configuration {}", path.display());
        let bytes = std::fs::read(path).map_err(|error| Error::configuration(&attempt, error))?;
        Credentials::from_parsed(&attempt, parse(&attempt, &bytes)?, true)
    }

    /// The logins of this user: `REGISTRY_AUTH_FILE`, `DOCKER_CONFIG` or `~/.docker`, and what
    /// Podman keeps. Files that are not there are left out.
    pub fn of_user() -> Result<Credentials, Error> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let docker = variable("DOCKER_CONFIG").or_else(|| Some(variable("HOME")?.join(".docker")));
        let candidates = [
            variable("REGISTRY_AUTH_FILE"),
            docker.map(|directory| directory.join("config.json")),
            variable("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
        ];
        let mut credentials = Credentials::none();
        for path in candidates
            .into_iter()
            .flatten()
            .filter(|path| path.is_file())
        {
            credentials = credentials.and(Credentials::from_file(&path)?);
        }
        Ok(credentials)
    }

    /// One login for one host.
    pub fn for_host(host: &Host, login: Login) -> Credentials {
        let key = Key {
            host: host.as_str().into(),
            path: String::new(),
        };
        Credentials {
            entries: vec![Entry { key, login }],
            helpers: Helpers::default(),
        }
    }

    /// These logins, and after them the other ones.
    pub fn and(mut self, other: Credentials) -> Credentials {
        self.entries.extend(other.entries);
        self.helpers = self.helpers.and(other.helpers);
        self
    }

    /// The logins to try for a repository, or for the whole host, the most specific first.
    pub async fn logins(&self, host: &Host, repository: Option<&str>) -> Result<Vec<Login>, Error> {
        let mut matching: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| entry.key.matches(host, repository))
            .collect();
        matching.sort_by_key(|entry| std::cmp::Reverse(entry.key.weight()));
        let mut logins: Vec<Login> = Vec::new();
        for login in matching.into_iter().map(|entry| entry.login.clone()) {
            if !logins.contains(&login) {
                logins.push(login);
            }
        }
        if logins.is_empty()
            && let Some(login) = self.helpers.ask(host).await?
        {
            logins.push(login);
        }
        Ok(logins)
    }

    fn from_parsed(attempt: &str, file: File, helpers: bool) -> Result<Credentials, Error> {
        let mut entries = Vec::new();
        for (key, raw) in file.auths.unwrap_or_default() {
            let login = login(raw).map_err(|reason| {
                Error::configuration(attempt, format!("the entry {key:?} {reason}"))
            })?;
            // An entry with nothing in it says that a helper has it.
            if let (Some(login), Some(key)) = (login, Key::parse(&key)) {
                entries.push(Entry { key, login });
            }
        }
        let mut known = Helpers::default();
        if helpers {
            for (key, name) in file.helpers.unwrap_or_default() {
                let helper = Helper::named(&name).map_err(|e| Error::configuration(attempt, e))?;
                if let Some(key) = Key::parse(&key) {
                    known.add(Some(key.host), helper);
                }
            }
            if let Some(name) = file.store.filter(|name| !name.is_empty()) {
                let helper = Helper::named(&name).map_err(|e| Error::configuration(attempt, e))?;
                known.add(None, helper);
            }
        }
        Ok(Credentials {
            entries,
            helpers: known,
        })
    }
}

/// Both forms: with `auths`, and the older one that is only its content.
fn parse(attempt: &str, bytes: &[u8]) -> Result<File, Error> {
    if bytes.len() > LARGEST {
        return Err(Error::configuration(
            attempt,
            format!("it is larger than {LARGEST} bytes"),
        ));
    }
    // The reader's own message could quote what is secret.
    let wrong = |error: serde_json::Error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Error::configuration(attempt, format!("it is no docker configuration ({place})"))
    };
    let value: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(wrong)?;
    let modern = ["auths", "credHelpers", "credsStore"]
        .iter()
        .any(|key| value.contains_key(*key));
    let old = !value.is_empty() && value.values().all(|entry| entry.is_object());
    match !modern && old && !value.contains_key("HttpHeaders") && !value.contains_key("proxies") {
        false => serde_json::from_slice(bytes).map_err(wrong),
        true => Ok(File {
            auths: Some(serde_json::from_slice(bytes).map_err(wrong)?),
            helpers: None,
            store: None,
        }),
    }
}

fn login(raw: RawEntry) -> Result<Option<Login>, &'static str> {
    let given = |secret: &Secret| !secret.0.is_empty();
    if let Some(token) = raw.registrytoken.filter(given) {
        return Ok(Some(Login::Bearer(token)));
    }
    if let Some(token) = raw.identitytoken.filter(given) {
        return Ok(Some(Login::Identity(token)));
    }
    if let Some(auth) = raw.auth.filter(given) {
        let decoded = BASE64_STANDARD
            .decode(auth.0.trim())
            .map_err(|_| "has an auth that is not base64")?;
        let text = String::from_utf8(decoded).map_err(|_| "has an auth that is not text")?;
        let (username, password) = text.split_once(':').ok_or("has an auth without a colon")?;
        // Docker pads what it writes with zero bytes.
        return Ok(Some(password_login(
            username,
            password.trim_end_matches('\0'),
        )));
    }
    match (raw.username, raw.password) {
        (Some(username), Some(password)) if !username.is_empty() => {
            Ok(Some(password_login(&username, &password.0)))
        }
        _ => Ok(None),
    }
}

/// A name and a password; the name `<token>` says that the password is an identity token.
pub(crate) fn password_login(username: &str, password: &str) -> Login {
    match username == "<token>" {
        true => Login::Identity(Secret::new(password)),
        false => Login::Password {
            username: username.into(),
            password: Secret::new(password),
        },
    }
}

impl Key {
    fn parse(text: &str) -> Option<Key> {
        let bare = text.split_once("://").map_or(text, |(_, bare)| bare);
        let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
        let path = path.trim_matches('/');
        // What older clients put behind the host is the version of the API and no repository.
        let path = if matches!(path, "v1" | "v2") {
            ""
        } else {
            path
        };
        let host = host.to_ascii_lowercase();
        let host = match Host::parse(&host) {
            Ok(host) => host.as_str().to_string(),
            Err(_) if host.contains('*') => host,
            Err(_) => return None,
        };
        Some(Key {
            host,
            path: path.into(),
        })
    }

    fn matches(&self, host: &Host, repository: Option<&str>) -> bool {
        let path = match (self.path.is_empty(), repository) {
            (true, _) => true,
            (false, None) => false,
            (false, Some(name)) => name
                .strip_prefix(&self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        path && host_matches(&self.host, host.as_str())
    }

    fn weight(&self) -> (usize, bool) {
        (self.path.len(), !self.host.contains('*'))
    }
}

/// A pattern matches label by label; `*` stands for anything inside one label.
fn host_matches(pattern: &str, host: &str) -> bool {
    let labels = |text: &str| text.split('.').map(String::from).collect::<Vec<_>>();
    let (pattern, host) = (labels(pattern), labels(host));
    pattern.len() == host.len() && pattern.iter().zip(&host).all(|(p, h)| label_matches(p, h))
}

fn label_matches(pattern: &str, label: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = label.strip_prefix(first) else {
        return false;
    };
    if !pattern.contains('*') {
        return rest.is_empty();
    }
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
