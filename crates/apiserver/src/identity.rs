//! Who asks, and whether they may. Two seams: an [`Authenticator`] turns a request into an
//! [`Identity`], an [`Authorizer`] judges what that identity wants to do.

use async_trait::async_trait;
use http::request::Parts;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Somebody known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user name.
    pub user: String,
    /// The UID, or empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user in some groups.
    pub fn new(user: &str, groups: &[&str]) -> Self {
        Identity {
            user: user.into(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            ..Identity::default()
        }
    }
    /// Whoever has not said who they are.
    pub fn anonymous() -> Self {
        Identity::new("system:anonymous", &["system:unauthenticated"])
    }
    /// Whether the identity is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
    /// `UserInfo` as reviews show it.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"username": self.user, "groups": self.groups});
        if !self.uid.is_empty() {
            value["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}

/// The identity of a verified client certificate, put into a request by the listener.
#[derive(Clone, Debug)]
pub struct CertificateIdentity(pub Identity);

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The verb.
    pub verb: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural resource; empty for a path.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The object's name, or empty.
    pub name: String,
    /// The path, where no resource is meant.
    pub path: String,
}

/// The answer to "may they?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allowed,
    /// They may not, and why.
    Denied(String),
}

/// Turns a request into somebody.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The identity; `None` if the request carries no credentials this authenticator knows;
    /// an error if it carries bad ones.
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, String>;
}

/// Judges what somebody wants to do.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// The decision.
    async fn authorize(&self, who: &Identity, what: &Attributes) -> Decision;
}

/// Takes the identity of the client certificate, which the listener has verified.
pub struct Certificates;

#[async_trait]
impl Authenticator for Certificates {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, String> {
        let certificate = request.extensions.get::<CertificateIdentity>();
        Ok(certificate.map(|CertificateIdentity(identity)| identity.clone()))
    }
}

/// Lets `system:masters` do everything, everybody see that the server lives, and nobody else
/// anything: the rule of a server with one owner.
pub struct OwnerOnly;

#[async_trait]
impl Authorizer for OwnerOnly {
    async fn authorize(&self, who: &Identity, what: &Attributes) -> Decision {
        let open = ["/healthz", "/livez", "/readyz", "/version"];
        let is_open = |path: &str| {
            open.iter().any(|o| {
                path.strip_prefix(o)
                    .is_some_and(|r| r.is_empty() || r.starts_with('/'))
            })
        };
        if who.is_in("system:masters") || is_open(&what.path) {
            return Decision::Allowed;
        }
        Decision::Denied(String::new())
    }
}
