//! How a host wants to be told who is asking, and the tokens that its token service gave. What a
//! host wants is learned from its first refusal and remembered, so that later requests go well at
//! once. A login goes to the host it is for and to the token service that this host names, over
//! TLS if the host itself was reached so, and to nobody else.

use crate::answer;
use crate::credentials::{Login, Secret};
use crate::error::Error;
use crate::reference::Host;
use crate::retry::Retry;
use crate::traffic::{Traffic, Use};
use crate::transport::{Wire, fault};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Response, Url};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The largest answer of a token service.
const LARGEST: usize = 1 << 20;
/// How long a token is good for when nobody says, as the specification has it.
const LIFE: u64 = 60;
/// How many tokens are kept; the oldest are only a request away.
const TOKENS: usize = 10_000;

/// What a host wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Challenge {
    /// The name and the password themselves.
    Basic,
    /// A token from a service.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// Reads the challenges of a refusal. A token is preferred to handing out the password.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let mut basic = None;
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let challenges = value
            .to_str()
            .ok()
            .and_then(|v| http_auth::parse_challenges(v).ok());
        for challenge in challenges.unwrap_or_default() {
            let parameter = |name: &str| {
                let found = challenge
                    .params
                    .iter()
                    .find(|(key, _)| key.eq_ignore_ascii_case(name));
                found
                    .map(|(_, value)| value.to_unescaped())
                    .filter(|value| !value.is_empty())
            };
            if challenge.scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            } else if challenge.scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameter("realm")
            {
                let (service, scope) = (parameter("service"), parameter("scope"));
                return Some(Challenge::Bearer {
                    realm,
                    service,
                    scope,
                });
            }
        }
    }
    basic
}

/// What is sent to say who is asking.
#[derive(Clone, Debug)]
pub(crate) struct Authorization {
    pub(crate) header: HeaderValue,
    /// Whether it came from a token service, and a fresh one could be had.
    pub(crate) renewable: bool,
}

/// Who asks a host for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) attempt: &'a str,
    pub(crate) host: &'a Host,
    pub(crate) scope: Option<&'a str>,
    pub(crate) login: Option<&'a Login>,
    /// Which of the logins this is.
    pub(crate) slot: usize,
    /// Whether the host was reached over TLS.
    pub(crate) secure: bool,
}

type TokenKey = (Host, String, usize);
type Kept = Arc<tokio::sync::Mutex<Option<Token>>>;

#[derive(Clone, Debug)]
struct Token {
    header: HeaderValue,
    until: Instant,
}

/// What was learned of the hosts.
#[derive(Debug)]
pub(crate) struct Authorizer {
    challenges: Mutex<HashMap<Host, Challenge>>,
    tokens: Mutex<HashMap<TokenKey, Kept>>,
    time: Duration,
    patience: Duration,
}

impl Authorizer {
    /// An authorizer that gives a token service this much time.
    pub(crate) fn new(time: Duration, retry: &Retry) -> Authorizer {
        Authorizer {
            challenges: Mutex::default(),
            tokens: Mutex::default(),
            time,
            patience: retry.patience,
        }
    }

    /// Remembers what a host wants.
    pub(crate) fn learn(&self, host: &Host, challenge: Challenge) {
        let mut challenges = self
            .challenges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        challenges.insert(host.clone(), challenge);
    }

    fn wanted_by(&self, host: &Host) -> Option<Challenge> {
        let challenges = self
            .challenges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        challenges.get(host).cloned()
    }

    /// What to send to a host; nothing where it has not asked yet or there is nothing to say.
    pub(crate) async fn authorization(
        &self,
        wire: &Wire,
        traffic: &Traffic,
        asker: Asker<'_>,
    ) -> Result<Option<Authorization>, Error> {
        let Some(challenge) = self.wanted_by(asker.host) else {
            return Ok(None);
        };
        let fixed = |header| {
            Ok(Some(Authorization {
                header,
                renewable: false,
            }))
        };
        match (challenge, asker.login) {
            (_, Some(Login::Bearer(token))) => fixed(bearer(asker.attempt, token.reveal())?),
            (Challenge::Basic, Some(Login::Password { username, password })) => {
                fixed(basic(asker.attempt, username, password)?)
            }
            (Challenge::Basic, _) => Ok(None),
            (
                Challenge::Bearer {
                    realm,
                    service,
                    scope,
                },
                _,
            ) => {
                let scope = asker.scope.map(String::from).or(scope);
                let kept = self.kept(asker);
                // Whoever comes while a token is being fetched waits for it.
                let mut kept = kept.lock().await;
                if let Some(token) = kept.as_ref().filter(|token| token.until > Instant::now()) {
                    let header = token.header.clone();
                    return Ok(Some(Authorization {
                        header,
                        renewable: true,
                    }));
                }
                let question = Question {
                    realm,
                    service,
                    scope,
                };
                let token = self.fetch(wire, traffic, asker, question).await?;
                let header = token.header.clone();
                *kept = Some(token);
                Ok(Some(Authorization {
                    header,
                    renewable: true,
                }))
            }
        }
    }

    /// Forgets a token that the host refused, unless another has taken its place.
    pub(crate) async fn forget(&self, asker: Asker<'_>, refused: &Authorization) {
        let kept = self.kept(asker);
        let mut kept = kept.lock().await;
        if kept
            .as_ref()
            .is_some_and(|token| token.header == refused.header)
        {
            *kept = None;
        }
    }

    fn kept(&self, asker: Asker<'_>) -> Kept {
        let scope = asker.scope.unwrap_or_default().to_string();
        let key = (asker.host.clone(), scope, asker.slot);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS && !tokens.contains_key(&key) {
            tokens.retain(|_, kept| Arc::strong_count(kept) > 1);
        }
        tokens.entry(key).or_default().clone()
    }

    async fn fetch(
        &self,
        wire: &Wire,
        traffic: &Traffic,
        asker: Asker<'_>,
        question: Question,
    ) -> Result<Token, Error> {
        let url = question.realm(asker, wire)?;
        let place = url.host_str().unwrap_or_default().to_string();
        let attempt = format!("{}, getting a token from {place}", asker.attempt);
        let loopback = Host::parse(&place).is_ok_and(|host| host.is_loopback());
        let client = wire.client(loopback);
        let request = match asker.login {
            // The exchange of a token is a form; everything else is a plain question.
            Some(Login::Identity(token)) => client
                .post(url)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(question.form(token)),
            login => {
                let request = client.get(question.address(url));
                match login {
                    Some(Login::Password { username, password }) => {
                        request.header(AUTHORIZATION, basic(&attempt, username, password)?)
                    }
                    _ => request,
                }
            }
        };
        let method = match asker.login {
            Some(Login::Identity(_)) => Method::POST,
            _ => Method::GET,
        };
        let gate = traffic.gate(&place);
        let _place = gate
            .enter(Use::Request, self.patience)
            .await
            .map_err(|wait| wait.over(&attempt))?;
        let exchange = async {
            let sent = request.send().await;
            let status = sent.as_ref().ok().map(Response::status);
            traffic.tally().request(&method, status);
            let response = sent.map_err(|error| fault(&attempt, error))?;
            if !response.status().is_success() {
                return Err(answer::refusal(&attempt, described(asker.login), response).await);
            }
            answer::body(&attempt, response, LARGEST).await
        };
        let slow = || Error::unavailable(&attempt, format!("no answer within {:?}", self.time));
        let body = timeout(self.time, exchange)
            .await
            .unwrap_or_else(|_| Err(slow()));
        let body = match body {
            Err(error @ Error::RateLimited { .. }) => {
                gate.pause(error.retry_after().unwrap_or(Duration::from_secs(1)));
                return Err(error);
            }
            // Token services say "denied" and "malformed" of a login they do not know.
            Err(Error::Denied { attempt, reason } | Error::Malformed { attempt, reason }) => {
                return Err(Error::Unauthorized { attempt, reason });
            }
            other => other?,
        };
        token(&attempt, &body)
    }
}

/// How a login is spoken of in messages.
pub(crate) fn described(login: Option<&Login>) -> &'static str {
    match login {
        None => "asked without a login",
        Some(Login::Password { .. }) => "asked with a user name and password",
        Some(Login::Identity(_)) => "asked with an identity token",
        Some(Login::Bearer(_)) => "asked with a registry token",
    }
}

/// What a token service is asked.
struct Question {
    realm: String,
    service: Option<String>,
    scope: Option<String>,
}

impl Question {
    fn realm(&self, asker: Asker<'_>, wire: &Wire) -> Result<Url, Error> {
        let url = Url::parse(&self.realm).ok().filter(Url::has_host);
        let url = url.ok_or_else(|| {
            Error::malformed(
                asker.attempt,
                format!("the token service {:?} is no address", self.realm),
            )
        })?;
        match url.scheme() {
            "https" => Ok(url),
            "http" if !asker.secure || wire.allows_plain() => Ok(url),
            scheme => Err(Error::malformed(
                asker.attempt,
                format!(
                    "the token service is to be asked over {scheme}, which would give the login away"
                ),
            )),
        }
    }

    fn address(&self, mut url: Url) -> Url {
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = &self.service {
                query.append_pair("service", service);
            }
            if let Some(scope) = &self.scope {
                query.append_pair("scope", scope);
            }
        }
        url
    }

    fn form(&self, token: &Secret) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "refresh_token");
        form.append_pair("client_id", "muster");
        form.append_pair("refresh_token", token.reveal());
        if let Some(service) = &self.service {
            form.append_pair("service", service);
        }
        if let Some(scope) = &self.scope {
            form.append_pair("scope", scope);
        }
        form.finish()
    }
}

#[derive(Deserialize)]
struct Said {
    token: Option<Secret>,
    access_token: Option<Secret>,
    expires_in: Option<u64>,
}

fn token(attempt: &str, body: &[u8]) -> Result<Token, Error> {
    // The reader's own message could quote the token.
    let wrong = || Error::malformed(attempt, "the token service did not answer with a token");
    let said: Said = serde_json::from_slice(body).map_err(|_| wrong())?;
    let given = |secret: &Secret| !secret.reveal().is_empty();
    let secret = said
        .token
        .filter(given)
        .or(said.access_token.filter(given))
        .ok_or_else(wrong)?;
    // Some services say a second or none at all; a day is as good as for ever.
    let life = said.expires_in.unwrap_or(LIFE).clamp(1, 86_400);
    // Renewed a little early, so that a request does not meet its end on the way.
    let until = Instant::now() + Duration::from_secs(life).mul_f64(0.9);
    Ok(Token {
        header: bearer(attempt, secret.reveal())?,
        until,
    })
}

fn bearer(attempt: &str, token: &str) -> Result<HeaderValue, Error> {
    sensitive(attempt, format!("Bearer {token}"))
}

fn basic(attempt: &str, username: &str, password: &Secret) -> Result<HeaderValue, Error> {
    let pair = format!("{username}:{}", password.reveal());
    sensitive(attempt, format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

fn sensitive(attempt: &str, value: String) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::try_from(value).map_err(|_| {
        Error::configuration(attempt, "the login has characters that cannot be sent")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_and_a_token_is_preferred() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull""#;
        for (values, expected) in [
            (vec![r#"Basic realm="x""#], Some(Challenge::Basic)),
            (
                vec![r#"basic realm="x""#, hub],
                Some(Challenge::Bearer {
                    realm: "https://auth.docker.io/token".into(),
                    service: Some("registry.docker.io".into()),
                    scope: Some("repository:a/b:pull".into()),
                }),
            ),
            (vec![r#"Bearer service="x""#], None),
            (vec!["Negotiate"], None),
            (vec!["\"\"\"", ""], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_str(value).expect("a header"),
                );
            }
            assert_eq!(challenge(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn tokens_are_read_in_both_spellings_and_never_quoted() {
        for (body, fine) in [
            (r#"{"token":"t"}"#, true),
            (r#"{"access_token":"t","expires_in":300}"#, true),
            (r#"{"token":"","access_token":"t","expires_in":0}"#, true),
            (r#"{"token":""}"#, false),
            (r#"{"token":{"hunter2":1}}"#, false),
            (r#"{"token":"hunter2\n"}"#, false),
            ("hunter2", false),
        ] {
            let read = token("getting a token", body.as_bytes());
            assert_eq!(read.is_ok(), fine, "{body}");
            assert!(!format!("{read:?}").contains("hunter2"), "{read:?}");
        }
    }
}
