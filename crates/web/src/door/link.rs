//! The door of a server that belongs to one person: a link, printed where only they see it, leads in once.
//! From then on a signed cookie says that it was they. The key is made anew with every process.

use super::{Door, Entry, STAY, Visitor, Way, now};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Method, Request};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::{Mutex, PoisonError};

/// What is done with the next token once one was used.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// A door that opens once for each printed link.
pub struct LinkDoor {
    key: hmac::Key,
    random: SystemRandom,
    token: Mutex<String>,
    cookie: String,
    name: String,
    client: kube::Client,
    tell: Tell,
}

/// There was not enough randomness.
#[derive(Debug, thiserror::Error)]
#[error("making a secret: the system gave no random bytes")]
pub struct NoSecret;

impl LinkDoor {
    /// A door to what `name` may see with `client`. Servers on other ports of the same machine have
    /// cookies of their own. `tell` is given the token of the next link whenever one was used.
    pub fn new(
        name: &str,
        client: kube::Client,
        port: u16,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, NoSecret> {
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).map_err(|_| NoSecret)?;
        let token = secret(&random)?;
        Ok(LinkDoor {
            key,
            random,
            token: Mutex::new(token),
            cookie: format!("muster-{port}"),
            name: name.into(),
            client,
            tell: Box::new(tell),
        })
    }

    /// The token of the link that leads in now.
    pub fn token(&self) -> String {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes a token, if it is the one; then there is another.
    fn take(&self, shown: &str) -> Option<String> {
        let next = secret(&self.random).ok()?;
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        // Compared by their codes, which takes as long whatever is wrong.
        let code = hmac::sign(&self.key, token.as_bytes());
        hmac::verify(&self.key, shown.as_bytes(), code.as_ref()).ok()?;
        token.clone_from(&next);
        Some(next)
    }

    fn signed(&self, until: u64) -> String {
        let code = hmac::sign(&self.key, stamped(until).as_bytes());
        format!("{until}.{}", BASE64_URL_SAFE_NO_PAD.encode(code.as_ref()))
    }

    fn is_good(&self, cookie: &str, now: u64) -> bool {
        let Some((until, code)) = cookie.split_once('.') else {
            return false;
        };
        let (Ok(until), Ok(code)) = (until.parse::<u64>(), BASE64_URL_SAFE_NO_PAD.decode(code))
        else {
            return false;
        };
        let stamped = stamped(until);
        hmac::verify(&self.key, stamped.as_bytes(), &code).is_ok() && now < until
    }
}

/// What is signed; never what a token is compared with.
fn stamped(until: u64) -> String {
    format!("session until {until}")
}

fn secret(random: &SystemRandom) -> Result<String, NoSecret> {
    let mut bytes = [0; 32];
    random.fill(&mut bytes).map_err(|_| NoSecret)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

#[async_trait]
impl Door for LinkDoor {
    fn way(&self) -> Way {
        Way::Link
    }

    fn cookie(&self) -> &str {
        &self.cookie
    }

    fn admit(&self, cookie: &str) -> Option<Visitor> {
        self.is_good(cookie, now()).then(|| Visitor {
            name: self.name.clone(),
            client: self.client.clone(),
        })
    }

    async fn knock(&self, request: &Request<Bytes>) -> Entry {
        // Whoever only looks whether a link leads somewhere does not use it up.
        if request.method() != Method::GET {
            return Entry::Out("");
        }
        let query = request.uri().query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let Some((_, shown)) = pairs.find(|(key, _)| key == "token") else {
            return Entry::Out("");
        };
        let Some(next) = self.take(&shown) else {
            return Entry::Out(
                "This link has been used, or is of another run. The one that was printed last leads in.",
            );
        };
        (self.tell)(&next);
        Entry::In(self.signed(now() + STAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn door(told: Arc<Mutex<Vec<String>>>) -> LinkDoor {
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        let client = kube::Client::new(service, "default");
        let tell = move |token: &str| told.lock().unwrap().push(token.into());
        LinkDoor::new("owner", client, 7443, tell).unwrap()
    }

    async fn knock(door: &LinkDoor, token: &str) -> Option<String> {
        let target = format!("/ui/sign-in?token={token}");
        let request = Request::get(target).body(Bytes::new()).unwrap();
        match door.knock(&request).await {
            Entry::In(cookie) => Some(cookie),
            Entry::Out(_) => None,
        }
    }

    #[tokio::test]
    async fn a_link_leads_in_once_and_the_next_one_is_told() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let door = door(told.clone());
        let first = door.token();
        assert_eq!(knock(&door, "wrong").await, None);
        let cookie = knock(&door, &first).await.unwrap();
        assert_eq!(door.admit(&cookie).unwrap().name, "owner");
        assert_eq!(knock(&door, &first).await, None);
        assert_eq!(told.lock().unwrap().as_slice(), [door.token()]);
        assert!(knock(&door, &door.token()).await.is_some());
    }

    #[tokio::test]
    async fn only_a_cookie_of_this_process_and_of_its_time_is_good() {
        let door = door(Arc::default());
        let cookie = door.signed(1000);
        assert!(door.is_good(&cookie, 999));
        assert!(!door.is_good(&cookie, 1000));
        let other = super::tests::door(Arc::default());
        let longer = cookie.replace("1000", "9000");
        let token = format!("{}.{}", 1000, door.token());
        for bad in [
            "",
            ".",
            "1000",
            "1000.",
            &longer,
            &token,
            &other.signed(1000),
        ] {
            assert!(!door.is_good(bad, 1), "{bad}");
        }
    }
}
