//! Credential helpers: programs named `docker-credential-…` that know a user's logins. They are
//! given a time limit and a limit on what they say; what they said is kept for a while, because
//! starting one may take seconds.

use crate::credentials::{Login, Secret, password_login};
use crate::error::Error;
use crate::reference::Host;
use serde::Deserialize;
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

/// How long a helper may take.
const TIME: Duration = Duration::from_secs(30);
/// How much it may say.
const OUTPUT: u64 = 64 * 1024;
/// How long its answer is kept: shorter than any cloud's tokens live.
const KEPT: Duration = Duration::from_secs(300);
/// The key under which Docker Hub's login is kept.
const HUB_KEY: &str = "https://index.docker.io/v1/";

/// A helper's program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Helper {
    program: String,
}

impl Helper {
    /// The helper of this name; a name that could be a path is refused.
    pub(crate) fn named(name: &str) -> Result<Helper, String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'.';
        match !name.is_empty() && name.bytes().all(plain) {
            true => Ok(Helper {
                program: format!("docker-credential-{name}"),
            }),
            false => Err(format!("{name:?} is no name of a credential helper")),
        }
    }
}

type Kept = HashMap<String, (Instant, Option<Login>)>;

/// The helpers of a docker configuration: by host, and the one for all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Helpers {
    known: Vec<(Option<String>, Helper)>,
    kept: Arc<Mutex<Kept>>,
}

impl Helpers {
    pub(crate) fn add(&mut self, host: Option<String>, helper: Helper) {
        self.known.push((host, helper));
    }

    pub(crate) fn and(mut self, other: Helpers) -> Helpers {
        self.known.extend(other.known);
        self.kept = Arc::default();
        self
    }

    /// The login that a helper has for a host.
    pub(crate) async fn ask(&self, host: &Host) -> Result<Option<Login>, Error> {
        let own = self
            .known
            .iter()
            .find(|(of, _)| of.as_deref() == Some(host.as_str()));
        let Some((_, helper)) = own.or_else(|| self.known.iter().find(|(of, _)| of.is_none()))
        else {
            return Ok(None);
        };
        let kept = |kept: &Kept| {
            let (since, login) = kept.get(host.as_str())?;
            (since.elapsed() < KEPT).then(|| login.clone())
        };
        if let Some(login) = kept(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(login);
        }
        let login = run(&helper.program, host).await?;
        let entry = (Instant::now(), login.clone());
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(host.as_str().into(), entry);
        Ok(login)
    }
}

#[derive(Deserialize)]
struct Said {
    #[serde(rename = "Username", default)]
    username: String,
    #[serde(rename = "Secret")]
    secret: Secret,
}

async fn run(program: &str, host: &Host) -> Result<Option<Login>, Error> {
    let attempt = format!("asking {program} for the login of {host}");
    let key = if host.is_docker_hub() {
        HUB_KEY
    } else {
        host.as_str()
    };
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Error::configuration(&attempt, error))?;
    let talk = timeout(TIME, talk(&mut child, key)).await;
    let (success, output) = match talk {
        Ok(Ok(said)) => said,
        Ok(Err(error)) => return Err(Error::configuration(&attempt, error)),
        // The program may wait for a person or a network; the next try may find it awake.
        Err(_) => {
            return Err(Error::unavailable(
                &attempt,
                format!("no answer within {TIME:?}"),
            ));
        }
    };
    if !success {
        // The one answer with a meaning; any other may hold who knows what and is not repeated.
        return match String::from_utf8_lossy(&output).contains("credentials not found") {
            true => Ok(None),
            false => Err(Error::configuration(&attempt, "the program failed")),
        };
    }
    let said: Said = serde_json::from_slice(&output).map_err(|_| {
        Error::configuration(&attempt, "the program's answer is not what helpers say")
    })?;
    Ok(Some(password_login(&said.username, said.secret.reveal())))
}

async fn talk(child: &mut Child, key: &str) -> std::io::Result<(bool, Vec<u8>)> {
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read is judged by what it says.
        let _ = input.write_all(key.as_bytes()).await;
    }
    let mut output = Vec::new();
    if let Some(stream) = child.stdout.take() {
        stream.take(OUTPUT).read_to_end(&mut output).await?;
    }
    Ok((child.wait().await?.success(), output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    async fn answer(script: &str) -> Result<Option<Login>, Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("docker-credential-test");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&program, mode).expect("executable");
        let host = Host::parse("a.example").expect("a host");
        // Another test that forks while the script is still open for writing makes it "busy".
        for _ in 0..100 {
            match run(&program.to_string_lossy(), &host).await {
                Err(error) if error.to_string().contains("busy") => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
        run(&program.to_string_lossy(), &host).await
    }

    #[tokio::test]
    async fn helpers_are_asked_for_the_host_and_believed() {
        let script = r#"read -r key; echo "{\"Username\":\"$1-$key\",\"Secret\":\"s\"}""#;
        let login = answer(script).await.expect("an answer");
        let password = Secret::new("s");
        assert_eq!(
            login,
            Some(Login::Password {
                username: "get-a.example".into(),
                password
            })
        );
        let token = r#"echo '{"Username":"<token>","Secret":"t"}'"#;
        let login = answer(token).await.expect("an answer");
        assert_eq!(login, Some(Login::Identity(Secret::new("t"))));
        let none = "echo credentials not found in native keychain; exit 1";
        assert_eq!(answer(none).await.expect("an answer"), None);
    }

    #[tokio::test]
    async fn a_helper_that_fails_is_named_and_not_quoted() {
        for script in [
            "echo hunter2; exit 3",
            "echo hunter2",
            "head -c 1000000 /dev/zero | tr '\\0' h",
        ] {
            let error = answer(script).await.expect_err(script);
            let text = error.to_string();
            assert!(
                text.contains("docker-credential-test") && text.contains("a.example"),
                "{text}"
            );
            assert!(!text.contains("hunter2"), "{text}");
        }
        let host = Host::parse("a.example").expect("a host");
        assert!(run("docker-credential-not-there", &host).await.is_err());
    }
}
