//! Doors: how somebody comes in, and who they are from then on. A door hands out a cookie that nobody else
//! can make, and gives for it a client that acts with that person's rights.

pub(crate) mod cookie;
mod link;
mod pace;
mod token;

pub use link::{LinkDoor, NoSecret};
pub use token::{Review, TokenDoor};

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;

/// For how long somebody stays signed in, in seconds.
pub(crate) const STAY: u64 = 12 * 60 * 60;

/// Somebody who is signed in.
pub struct Visitor {
    /// Their name.
    pub name: String,
    /// Reads with their rights.
    pub client: kube::Client,
}

impl Visitor {
    /// The namespace of a service account. Who may not list namespaces is looked for there at least.
    pub(crate) fn home(&self) -> Option<&str> {
        let account = self.name.strip_prefix("system:serviceaccount:")?;
        account.split(':').next()
    }
}

/// What the door looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A link that was printed leads in.
    Link,
    /// Whoever has a token shows it.
    Token,
}

/// What came of knocking.
pub enum Entry {
    /// They are in, with this cookie.
    In(String),
    /// They are told what to do.
    Out(&'static str),
}

/// How somebody comes in.
#[async_trait]
pub trait Door: Send + Sync + 'static {
    /// What it looks like.
    fn way(&self) -> Way;

    /// The name of its cookie.
    fn cookie(&self) -> &str;

    /// Who has this cookie, if it is a good one.
    fn admit(&self, cookie: &str) -> Option<Visitor>;

    /// Somebody knocks.
    async fn knock(&self, request: &Request<Bytes>) -> Entry;
}

/// Now, in seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
