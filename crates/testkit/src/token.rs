//! A token service, as registries send their clients to: it checks a login and signs tokens that
//! a real registry verifies. The first tokens may be given out already expired, because a token
//! that runs out on the way is what clients get wrong.

use crate::registry::{PASSWORD, USERNAME};
use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The identity token that is taken in exchange.
pub const IDENTITY_TOKEN: &str = "an-identity-token";

/// A running token service; it ends when dropped.
#[derive(Debug)]
pub struct TokenService {
    address: SocketAddr,
    signer: Arc<Signer>,
    issued: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Signer {
    key: EcdsaKeyPair,
    certificate: rcgen::Certificate,
}

impl TokenService {
    /// Starts a service whose first `expired` tokens are of the past.
    pub async fn start(expired: usize) -> Result<TokenService> {
        let pair = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(vec!["token.invalid".into()])?.self_signed(&pair)?;
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &pair.serialize_der(),
            &random,
        )
        .map_err(|error| anyhow::anyhow!("the key cannot sign: {error}"))?;
        let signer = Arc::new(Signer { key, certificate });
        let issued: Arc<AtomicUsize> = Arc::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (shared, count) = (signer.clone(), issued.clone());
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (signer, count) = (shared.clone(), count.clone());
                connections.spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let (signer, count) = (signer.clone(), count.clone());
                        async move { answer(request, &signer, &count, expired).await }
                    });
                    let builder =
                        hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(TokenService {
            address,
            signer,
            issued,
            task,
        })
    }

    /// Where tokens are had.
    pub fn realm(&self) -> String {
        format!("http://{}/token", self.address)
    }

    /// The certificate that the tokens are signed under, in PEM.
    pub fn certificate(&self) -> String {
        self.signer.certificate.pem()
    }

    /// How many tokens were given out.
    pub fn issued(&self) -> usize {
        self.issued.load(Ordering::SeqCst)
    }

    /// A good token for a scope such as `repository:a/b:pull,push`, for the test itself.
    pub fn token(&self, scope: &str) -> Result<String> {
        self.signer.token(scope, true)
    }
}

impl Drop for TokenService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    request: Request<Incoming>,
    signer: &Signer,
    issued: &AtomicUsize,
    expired: usize,
) -> Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let form = body.collect().await?.to_bytes();
    let pair = BASE64_STANDARD.encode(format!("{USERNAME}:{PASSWORD}"));
    let known = head
        .headers
        .get("authorization")
        .is_some_and(|value| value == &format!("Basic {pair}"));
    let text = String::from_utf8_lossy(&form).into_owned();
    let exchanged = head.method == http::Method::POST
        && parameter(&text, "refresh_token").as_deref() == Some(IDENTITY_TOKEN)
        && parameter(&text, "grant_type").as_deref() == Some("refresh_token");
    let respond = |status, body: String| {
        let response = Response::builder()
            .status(status)
            .header("content-type", "application/json");
        Ok(response.body(Full::new(Bytes::from(body)))?)
    };
    if !known && !exchanged {
        let body =
            r#"{"errors":[{"code":"UNAUTHORIZED","message":"incorrect username or password"}]}"#;
        return respond(StatusCode::UNAUTHORIZED, body.into());
    }
    let query = head.uri.query().unwrap_or_default().to_string();
    let scope = parameter(&query, "scope")
        .or_else(|| parameter(&text, "scope"))
        .unwrap_or_default();
    let good = issued.fetch_add(1, Ordering::SeqCst) >= expired;
    let field = if exchanged { "access_token" } else { "token" };
    respond(
        StatusCode::OK,
        json!({field: signer.token(&scope, good)?, "expires_in": 300}).to_string(),
    )
}

fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

impl Signer {
    fn token(&self, scope: &str, good: bool) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let (from, until) = if good {
            (now - 10, now + 600)
        } else {
            (now - 1200, now - 600)
        };
        let mut access = Vec::new();
        for part in scope.split(' ').filter(|part| !part.is_empty()) {
            let (kind, rest) = part.split_once(':').context("a malformed scope")?;
            let (name, actions) = rest.rsplit_once(':').context("a malformed scope")?;
            let actions: Vec<&str> = actions.split(',').collect();
            access.push(json!({"type": kind, "name": name, "actions": actions}));
        }
        let header = json!({
            "typ": "JWT",
            "alg": "ES256",
            "x5c": [BASE64_STANDARD.encode(self.certificate.der())],
        });
        let claims = json!({
            "iss": "muster", "sub": USERNAME, "aud": "registry", "jti": from.to_string(),
            "iat": from, "nbf": from, "exp": until, "access": access,
        });
        let encode = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), message.as_bytes())
            .map_err(|error| anyhow::anyhow!("cannot sign: {error}"))?;
        Ok(format!(
            "{message}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref())
        ))
    }
}
