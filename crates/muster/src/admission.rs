//! What our servers ask of writes beyond the rules of a kind: the few defaults of Kubernetes' own
//! kinds that a standalone server must set, the guard around managed objects, the gate that jobs
//! come through, and the rights of whoever writes a report on another namespace's images.

use async_trait::async_trait;
use muster_api::guard::{self, Accounts, Deed};
use muster_api::storage;
use muster_apiserver::admission::{Admission, Review};
use muster_apiserver::identity::{Attributes, Authorizer, Decision};
use muster_apiserver::request::Verb;
use muster_kind::{Status, structural};
use muster_operator::admission::{Gate, Newcomer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Prepares built-in kinds.
pub(crate) struct Builtin;

#[async_trait]
impl Admission for Builtin {
    async fn admit(
        &self,
        review: &Review<'_>,
        new: Option<&mut Value>,
    ) -> Result<Vec<String>, Status> {
        // A namespace is finalized by taking away what preparing would put back.
        let prepared = review.kind.builtin && review.subresource != "finalize";
        if let Some(new) = new.filter(|_| prepared) {
            muster_api::builtin::prepare(&review.kind.kind, new, review.old);
        }
        Ok(Vec::new())
    }
}

/// Keeps managed objects the controller's.
pub(crate) struct Managed(pub(crate) Accounts);

#[async_trait]
impl Admission for Managed {
    async fn admit(
        &self,
        review: &Review<'_>,
        new: Option<&mut Value>,
    ) -> Result<Vec<String>, Status> {
        let deed = Deed {
            group: &review.kind.group,
            kind: &review.kind.kind,
            user: &review.who.user,
            old: review.old,
            new: new.as_deref(),
        };
        let judged = guard::judge(deed, &self.0);
        judged.map_err(|why| review.forbidden(&why))?;
        Ok(Vec::new())
    }
}

/// Has jobs come through the gate, as the webhook does in a cluster. The gate asks the very server
/// that this is part of, so it is there only after it.
#[derive(Clone, Default)]
pub(crate) struct Jobs(Arc<OnceLock<Gate>>);

impl Jobs {
    /// From now on jobs come through this gate. Only the first one counts.
    pub(crate) fn through(&self, gate: Gate) {
        let _ = self.0.set(gate);
    }
}

#[async_trait]
impl Admission for Jobs {
    async fn admit(
        &self,
        review: &Review<'_>,
        new: Option<&mut Value>,
    ) -> Result<Vec<String>, Status> {
        let (Some(gate), Some(object)) = (self.0.get(), new) else {
            return Ok(Vec::new());
        };
        let created = review.verb == Verb::Create && review.subresource.is_empty();
        // Nothing is claimed for an object that will be refused: rules come after admission here.
        let named = object.pointer("/metadata/name").and_then(Value::as_str);
        let is_named = named.is_some_and(|name| muster_kind::name::subdomain(name).is_empty());
        let is_valid = || {
            structural::validate(object, &review.kind.schema).is_empty()
                && review
                    .kind
                    .validator
                    .is_none_or(|validator| validator(object, None).is_empty())
        };
        if !created || !is_named || !is_valid() {
            return Ok(Vec::new());
        }
        let newcomer = Newcomer {
            kind: review.kind,
            namespace: review.namespace,
            object,
            dry_run: review.dry_run,
        };
        gate.admit(&newcomer).await
    }
}

/// A WorkloadScanReport shows what was found in the images it names. Whoever has it show another
/// namespace's must be allowed to read them there.
pub(crate) struct ReportAuthors(pub(crate) Arc<dyn Authorizer>);

#[async_trait]
impl Admission for ReportAuthors {
    async fn admit(
        &self,
        review: &Review<'_>,
        new: Option<&mut Value>,
    ) -> Result<Vec<String>, Status> {
        let report = (review.kind.group.as_str(), review.kind.kind.as_str());
        let Some(new) = new.filter(|_| report == (storage::GROUP, "WorkloadScanReport")) else {
            return Ok(Vec::new());
        };
        // What it shows already, whoever may write it may see already.
        let shown: Vec<&Value> = review.old.into_iter().flat_map(images).collect();
        let added = images(new).filter(|image| !shown.contains(image));
        let namespaces: BTreeSet<String> = added
            .filter_map(|image| Some(image.get("namespace")?.as_str()?.to_owned()))
            .filter(|namespace| namespace != review.namespace)
            .collect();
        for namespace in namespaces {
            self.may_read(review, &namespace).await?;
        }
        Ok(Vec::new())
    }
}

impl ReportAuthors {
    async fn may_read(&self, review: &Review<'_>, namespace: &str) -> Result<(), Status> {
        let read = Attributes {
            verb: "get".into(),
            namespace: namespace.into(),
            group: storage::GROUP.into(),
            version: storage::VERSION.into(),
            resource: "vulnerabilityreports".into(),
            ..Attributes::default()
        };
        match self.0.authorize(review.who, &read).await {
            Decision::Allowed => Ok(()),
            Decision::Denied(_) => Err(review.forbidden(&format!(
                "it shows images of the namespace {namespace:?}, where {:?} may not get vulnerabilityreports",
                review.who.user
            ))),
            Decision::Unknown(why) => {
                tracing::warn!(why, "asking for the rights of a report's author");
                let mut status = Status::unavailable(format!(
                    "nobody can tell now whether {:?} may get vulnerabilityreports in {namespace:?}",
                    review.who.user
                ));
                status.retry_after = Some(1);
                Err(status)
            }
        }
    }
}

/// The images that a report names.
fn images(report: &Value) -> impl Iterator<Item = &Value> {
    let containers = report.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten();
    containers.filter_map(|container| container.get("imageRef"))
}
