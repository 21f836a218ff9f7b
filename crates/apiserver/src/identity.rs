//! Who asks, and whether they may. Two seams: an [`Authenticator`] turns a request into an
//! [`Identity`], an [`Authorizer`] judges what that identity wants to do.

use async_trait::async_trait;
use http::request::Parts;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// The certificates a client has shown and proven to hold the key of, its own first; put into a
/// request by the listener. Who signed them is the TLS configuration's business, or, where that
/// takes any, an authenticator's.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub Arc<[CertificateDer<'static>]>);

impl ClientCertificate {
    /// Whom the certificate names: the common name is the user, organizations are groups.
    pub fn subject(&self) -> Option<Identity> {
        let (_, certificate) = x509_parser::parse_x509_certificate(self.0.first()?).ok()?;
        let subject = certificate.subject();
        let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups = subject
            .iter_organization()
            .filter_map(|name| name.as_str().ok().map(Into::into))
            .collect();
        Some(Identity {
            user,
            groups,
            ..Identity::default()
        })
    }
}

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
    /// What a collection is narrowed to by labels, as it was written.
    pub label_selector: String,
    /// What a collection is narrowed to by fields, as it was written.
    pub field_selector: String,
}

impl Attributes {
    /// Whether somebody only wants to know that the server lives.
    pub fn is_health(&self) -> bool {
        ["/healthz", "/livez", "/readyz"].iter().any(|page| {
            let rest = self.path.strip_prefix(page);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// The answer to "may they?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allowed,
    /// They may not, and why.
    Denied(String),
    /// Nobody could say, and why.
    Unknown(String),
}

/// Why credentials did not lead to an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They are wrong.
    Bad(String),
    /// Nobody could say whether they are right.
    Unavailable(String),
}

/// Turns a request into somebody.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The identity; `None` if the request carries no credentials this authenticator knows;
    /// an error if it carries bad ones.
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, Refusal>;
}

/// Judges what somebody wants to do.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// The decision.
    async fn authorize(&self, who: &Identity, what: &Attributes) -> Decision;
}

/// Takes the subject of the client certificate, where the TLS configuration lets only those in that
/// are to be believed.
pub struct Certificates;

#[async_trait]
impl Authenticator for Certificates {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Identity>, Refusal> {
        let certificate = request.extensions.get::<ClientCertificate>();
        Ok(certificate.and_then(ClientCertificate::subject))
    }
}

/// Lets `system:masters` do everything, everybody see that the server lives, and nobody else
/// anything: the rule of a server with one owner.
pub struct OwnerOnly;

#[async_trait]
impl Authorizer for OwnerOnly {
    async fn authorize(&self, who: &Identity, what: &Attributes) -> Decision {
        let open = what.is_health() || what.path == "/version";
        if who.is_in("system:masters") || open {
            return Decision::Allowed;
        }
        Decision::Denied(String::new())
    }
}
