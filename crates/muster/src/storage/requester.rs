//! Who asks: whoever the front proxy says, if it is the front proxy that says so; else whom a
//! client certificate of the cluster names; else whom a bearer token belongs to, which only
//! kube-apiserver can tell.

use super::cache::{Cache, ask};
use super::trust::Trust;
use async_trait::async_trait;
use http::request::Parts;
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::Api;
use kube::api::PostParams;
use muster_apiserver::identity::{Authenticator, ClientCertificate, Identity, Refusal};
use muster_kind::Digest;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// For how long a token is what it was.
const BELIEVED: Duration = Duration::from_secs(10);
/// No token is longer.
const TOKEN: usize = 64 * 1024;

/// The authorities of the moment.
pub(super) type Trusted = watch::Receiver<Option<Arc<Trust>>>;

/// Believes the headers of the front proxy, and only its.
pub(super) struct FrontProxy(pub(super) Trusted);

#[async_trait]
impl Authenticator for FrontProxy {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, Refusal> {
        let trust = self.0.borrow().clone();
        let certificate = request.extensions.get::<ClientCertificate>();
        let Some((trust, certificate)) = trust.zip(certificate) else {
            return Ok(None);
        };
        match trust.is_proxy(certificate) {
            true => told(&trust, &request.headers),
            false => Ok(None),
        }
    }
}

/// Whom the headers name.
fn told(trust: &Trust, headers: &HeaderMap) -> Result<Option<Identity>, Refusal> {
    let first = |names: &[String]| -> Result<String, Refusal> {
        for name in names {
            for value in headers.get_all(name) {
                let value = text(value)?;
                if !value.is_empty() {
                    return Ok(value);
                }
            }
        }
        Ok(String::new())
    };
    let user = first(&trust.user_headers)?;
    if user.is_empty() {
        return Ok(None);
    }
    let groups = trust.group_headers.iter();
    let groups = groups.flat_map(|name| headers.get_all(name)).map(text);
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let mut prefixes = trust.extra_prefixes.iter();
        let key = prefixes.find_map(|prefix| name.as_str().strip_prefix(prefix.as_str()));
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            let key = percent_decode_str(key).decode_utf8_lossy().to_lowercase();
            extra.entry(key).or_default().push(text(value)?);
        }
    }
    Ok(Some(Identity {
        user,
        uid: first(&trust.uid_headers)?,
        groups: groups.collect::<Result<_, _>>()?,
        extra,
    }))
}

fn text(value: &http::HeaderValue) -> Result<String, Refusal> {
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Refusal::Bad("a header of the front proxy is no text".into()))?;
    Ok(text.to_owned())
}

/// Believes the certificates of the cluster's clients.
pub(super) struct ClusterClients(pub(super) Trusted);

#[async_trait]
impl Authenticator for ClusterClients {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, Refusal> {
        let trust = self.0.borrow().clone();
        let certificate = request.extensions.get::<ClientCertificate>();
        Ok(trust
            .zip(certificate)
            .filter(|(trust, certificate)| trust.is_client(certificate))
            .and_then(|(_, certificate)| certificate.subject()))
    }
}

/// Asks kube-apiserver whose a bearer token is.
pub(super) struct Tokens {
    reviews: Api<TokenReview>,
    /// Whose a token is; nobody's if it is wrong.
    known: Cache<Option<Identity>>,
}

impl Tokens {
    pub(super) fn new(client: kube::Client) -> Self {
        Tokens {
            reviews: Api::all(client),
            known: Cache::new(BELIEVED),
        }
    }

    /// Whose a token is; nobody's if it is wrong.
    pub(super) async fn whose(&self, token: &str) -> Result<Option<Identity>, Refusal> {
        if token.len() > TOKEN {
            return Err(Refusal::Bad("the token is too long".into()));
        }
        let question = Digest::of(token.as_bytes());
        self.known.get(question, self.review(token)).await
    }

    async fn review(&self, token: &str) -> Result<Option<Identity>, Refusal> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.into(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let unavailable = |error: &str| {
            Refusal::Unavailable(format!("asking kube-apiserver whose a token is: {error}"))
        };
        let params = PostParams::default();
        let answer = ask(self.reviews.create(&params, &review)).await;
        let answer = answer.map_err(|error| unavailable(&error))?;
        let status = answer.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        match (user, status.error.filter(|error| !error.is_empty())) {
            // It may be a passing trouble of whoever knows tokens: not to be remembered.
            (None, Some(error)) => Err(Refusal::Bad(error)),
            (user, _) => Ok(user.map(identity)),
        }
    }
}

fn identity(user: UserInfo) -> Identity {
    Identity {
        user: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    }
}

#[async_trait]
impl Authenticator for Tokens {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, Refusal> {
        let Some(token) = bearer(&request.headers) else {
            return Ok(None);
        };
        let bad = || Refusal::Bad("kube-apiserver does not know the token".into());
        self.whose(token).await?.map(Some).ok_or_else(bad)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .trim()
        .split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust() -> Trust {
        let mut trust = Trust::default();
        trust.user_headers = vec!["x-remote-user".into(), "x-other-user".into()];
        trust.group_headers = vec!["x-remote-group".into()];
        trust.uid_headers = vec!["x-remote-uid".into()];
        trust.extra_prefixes = vec!["x-remote-extra-".into()];
        trust
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                *name,
                http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers
    }

    #[test]
    fn the_proxy_tells_user_groups_and_the_rest() {
        let told = told(
            &trust(),
            &headers(&[
                ("x-remote-user", ""),
                ("x-other-user", "jäne"),
                ("x-remote-group", "a"),
                ("x-remote-group", "b,c"),
                ("x-remote-uid", "7"),
                ("x-remote-extra-scopes", "one"),
                ("x-remote-extra-scopes", "two"),
                ("x-remote-extra-example.org%2fproject", "x"),
                ("x-unrelated", "y"),
            ]),
        );
        let expected = Identity {
            user: "jäne".into(),
            uid: "7".into(),
            groups: vec!["a".into(), "b,c".into()],
            extra: BTreeMap::from([
                ("scopes".into(), vec!["one".into(), "two".into()]),
                ("example.org/project".into(), vec!["x".into()]),
            ]),
        };
        assert_eq!(told, Ok(Some(expected)));
    }

    #[test]
    fn a_proxy_that_names_no_user_says_nothing() {
        let told = told(&trust(), &headers(&[("x-remote-group", "system:masters")]));
        assert_eq!(told, Ok(None));
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        for (header, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("Bearer", None),
        ] {
            assert_eq!(bearer(&headers(&[("authorization", header)])), token);
        }
    }
}
