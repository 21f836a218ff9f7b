//! The door of a server in a cluster: whoever has a bearer token shows it once. It is kept by the browser,
//! sealed so that only servers with the same secret can open it, and everything is read with it: who may
//! see what is decided by whom it is shown to, every time.

use super::pace::Pace;
use super::{Door, Entry, STAY, Visitor, Way, now};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Request};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// The name of the cookie.
const COOKIE: &str = "muster";
/// No browser keeps a larger cookie, its name and what is said of it included.
const KEPT: usize = 3900;
/// A longer token could not be kept: sealing and writing it down takes its share.
const LONGEST: usize = 2800;
const TOO_LONG: &str = "This token is too long to be kept by a browser.";

/// Asks whose a token is, and reads with it.
#[async_trait]
pub trait Review: Send + Sync + 'static {
    /// The user's name; none if the token is wrong, an error if nobody can tell.
    async fn whose(&self, token: &str) -> Result<Option<String>, String>;

    /// A client that reads with the token.
    fn client(&self, token: &str) -> kube::Client;
}

/// The secret of the moment. When it is another one, everybody shows their token again.
type Secret = Box<dyn Fn() -> Arc<[u8]> + Send + Sync>;

/// A door that takes tokens.
pub struct TokenDoor<R> {
    secret: Secret,
    random: SystemRandom,
    pace: Pace,
    review: R,
}

/// What is sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    user: String,
    token: String,
    until: u64,
}

impl<R: Review> TokenDoor<R> {
    /// A door for the tokens that `review` knows. Replicas with the same secret open the same cookies.
    pub fn new(secret: impl Fn() -> Arc<[u8]> + Send + Sync + 'static, review: R) -> Self {
        TokenDoor {
            secret: Box::new(secret),
            random: SystemRandom::new(),
            pace: Pace::new(Instant::now()),
            review,
        }
    }

    fn key(&self) -> Option<LessSafeKey> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"muster pages");
        let derived = salt.extract(&(self.secret)());
        let key = derived.expand(&[b"cookie of the pages, 1"], &AES_256_GCM);
        Some(LessSafeKey::new(UnboundKey::from(key.ok()?)))
    }

    fn seal(&self, kept: &Kept) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = serde_json::to_vec(kept).ok()?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key()?
            .seal_in_place_append_tag(unique, Aad::from(COOKIE), &mut sealed)
            .ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    fn open(&self, cookie: &str, now: u64) -> Option<Kept> {
        let mut sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (nonce, sealed) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self
            .key()?
            .open_in_place(nonce, Aad::from(COOKIE), sealed)
            .ok()?;
        let kept: Kept = serde_json::from_slice(opened).ok()?;
        (now < kept.until).then_some(kept)
    }
}

#[async_trait]
impl<R: Review> Door for TokenDoor<R> {
    fn way(&self) -> Way {
        Way::Token
    }

    fn cookie(&self) -> &str {
        COOKIE
    }

    fn admit(&self, cookie: &str) -> Option<Visitor> {
        let kept = self.open(cookie, now())?;
        Some(Visitor {
            client: self.review.client(&kept.token),
            name: kept.user,
        })
    }

    async fn knock(&self, request: &Request<Bytes>) -> Entry {
        if request.method() != Method::POST {
            return Entry::Out("");
        }
        let mut pairs = form_urlencoded::parse(request.body());
        let token = pairs.find(|(key, _)| key == "token");
        let token = token.map(|(_, token)| token.trim().to_owned());
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Entry::Out("There was no token.");
        };
        if token.len() > LONGEST {
            return Entry::Out(TOO_LONG);
        }
        // What is no header has no place in one.
        if token.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Entry::Out("This is not a token.");
        }
        if !self.pace.allows(Instant::now()) {
            return Entry::Out("Too many people sign in at once. Try again in a moment.");
        }
        match self.review.whose(&token).await {
            Ok(Some(user)) => {
                let until = now() + STAY;
                let user: String = user.chars().take(200).collect();
                match self.seal(&Kept { user, token, until }) {
                    Some(cookie) if cookie.len() > KEPT => Entry::Out(TOO_LONG),
                    Some(cookie) => Entry::In(cookie),
                    None => Entry::Out("The token could not be kept. Try again."),
                }
            }
            Ok(None) => Entry::Out("The cluster does not know this token, or it has expired."),
            Err(why) => {
                tracing::warn!(why, "asking whose a token is");
                Entry::Out("Nobody can tell now whose this token is. Try again.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    #[async_trait]
    impl Review for Known {
        async fn whose(&self, token: &str) -> Result<Option<String>, String> {
            Ok((token == "good").then(|| "jane".to_owned()))
        }

        fn client(&self, _: &str) -> kube::Client {
            let service = tower::service_fn(|_: Request<kube::client::Body>| async {
                Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
            });
            kube::Client::new(service, "default")
        }
    }

    fn door_of(secret: &'static [u8]) -> TokenDoor<Known> {
        TokenDoor::new(move || Arc::from(secret), Known)
    }

    async fn knock(door: &TokenDoor<Known>, method: Method, body: &str) -> Option<String> {
        let mut request = Request::new(Bytes::copy_from_slice(body.as_bytes()));
        *request.method_mut() = method;
        match door.knock(&request).await {
            Entry::In(cookie) => Some(cookie),
            Entry::Out(_) => None,
        }
    }

    #[tokio::test]
    async fn a_good_token_is_kept_sealed_and_replicas_open_it() {
        let door = door_of(b"the key of the server");
        let cookie = knock(&door, Method::POST, "token=+good%0A").await.unwrap();
        assert!(!cookie.contains("good"));
        let replica = door_of(b"the key of the server");
        assert_eq!(replica.admit(&cookie).unwrap().name, "jane");
        assert_eq!(replica.open(&cookie, now()).unwrap().token, "good");
        assert!(replica.open(&cookie, now() + STAY + 1).is_none());
        let stranger = door_of(b"another key");
        assert!(stranger.admit(&cookie).is_none());
        for bad in ["", "AAAA", &cookie[..cookie.len() - 2]] {
            assert!(door.admit(bad).is_none(), "{bad}");
        }
    }

    #[tokio::test]
    async fn what_is_no_good_token_does_not_lead_in() {
        let door = door_of(b"secret");
        let long = format!("token={}", "x".repeat(LONGEST + 1));
        for body in [
            "",
            "token=",
            "token=bad",
            "token=a%00b",
            "other=good",
            &long,
        ] {
            assert_eq!(knock(&door, Method::POST, body).await, None);
        }
        assert_eq!(knock(&door, Method::GET, "token=good").await, None);
    }
}
