//! The seam for rules beyond a kind's own: whoever builds a server adds what must happen to an
//! object, or keep it from happening, before it is stored.

use crate::identity::Identity;
use crate::request::Verb;
use async_trait::async_trait;
use muster_kind::status::{About, Cause};
use muster_kind::{Kind, Status};
use serde_json::Value;

/// One write, as admission sees it.
pub struct Review<'a> {
    /// The kind written.
    pub kind: &'a Kind,
    /// What is done: create, update or delete.
    pub verb: Verb,
    /// The namespace, or empty.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// Who asks.
    pub who: &'a Identity,
    /// The object before.
    pub old: Option<&'a Value>,
    /// Nothing will be kept.
    pub dry_run: bool,
}

impl Review<'_> {
    /// The answer to whoever creates something in a namespace that is not there.
    pub fn namespace_missing(&self) -> Status {
        let about = About {
            group: "",
            resource: "namespaces",
        };
        Status::not_found(about, self.namespace)
    }

    /// The answer to whoever creates something in a namespace that is ending.
    pub fn namespace_ends(&self) -> Status {
        let namespace = self.namespace;
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut status = self.forbidden(&why);
        status.causes = vec![Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        }];
        status
    }

    /// The answer to whoever may not write this.
    pub fn forbidden(&self, why: &str) -> Status {
        let about = About {
            group: &self.kind.group,
            resource: &self.kind.plural,
        };
        Status::forbidden(about, self.name, why)
    }
}

/// Rules about writes.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Changes or refuses the new object (`None` on delete); returns warnings for the client.
    async fn admit(
        &self,
        review: &Review<'_>,
        new: Option<&mut Value>,
    ) -> Result<Vec<String>, Status>;
}
