//! Whether they may: kube-apiserver is asked, so that the cluster's own roles decide. What it
//! answered counts for a few seconds.

use super::cache::{Cache, ask};
use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use muster_apiserver::identity::{Attributes, Authorizer, Decision, Identity};
use muster_kind::Digest;
use std::time::Duration;

/// For how long an answer counts.
const BELIEVED: Duration = Duration::from_secs(10);

/// Asks kube-apiserver.
pub(super) struct Access {
    reviews: Api<SubjectAccessReview>,
    known: Cache<Decision>,
}

impl Access {
    pub(super) fn new(client: kube::Client) -> Self {
        Access {
            reviews: Api::all(client),
            known: Cache::new(BELIEVED),
        }
    }

    async fn review(&self, spec: SubjectAccessReviewSpec) -> Result<Decision, String> {
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let params = PostParams::default();
        let answer = ask(self.reviews.create(&params, &review)).await;
        let answer =
            answer.map_err(|error| format!("asking kube-apiserver for rights: {error}"))?;
        let status = answer.status.unwrap_or_default();
        if status.allowed {
            return Ok(Decision::Allowed);
        }
        let reason = status.reason.unwrap_or_default();
        Ok(Decision::Denied(match status.evaluation_error {
            Some(error) if reason.is_empty() => error,
            Some(error) => format!("{reason}: {error}"),
            None => reason,
        }))
    }
}

#[async_trait]
impl Authorizer for Access {
    async fn authorize(&self, who: &Identity, what: &Attributes) -> Decision {
        if who.is_in("system:masters") || what.is_health() {
            return Decision::Allowed;
        }
        let spec = question(who, what);
        let Ok(text) = serde_json::to_vec(&spec) else {
            return Decision::Unknown("the question cannot be written".into());
        };
        let known = self.known.get(Digest::of(&text), self.review(spec));
        known.await.unwrap_or_else(Decision::Unknown)
    }
}

fn question(who: &Identity, what: &Attributes) -> SubjectAccessReviewSpec {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let resource = || ResourceAttributes {
        verb: some(&what.verb),
        namespace: some(&what.namespace),
        group: some(&what.group),
        version: some(&what.version),
        resource: some(&what.resource),
        subresource: some(&what.subresource),
        name: some(&what.name),
        label_selector: some(&what.label_selector).map(|raw| LabelSelectorAttributes {
            raw_selector: Some(raw),
            requirements: None,
        }),
        field_selector: some(&what.field_selector).map(|raw| FieldSelectorAttributes {
            raw_selector: Some(raw),
            requirements: None,
        }),
    };
    let path = || NonResourceAttributes {
        path: some(&what.path),
        verb: some(&what.verb),
    };
    let is_path = what.resource.is_empty();
    SubjectAccessReviewSpec {
        user: some(&who.user),
        uid: some(&who.uid),
        groups: Some(who.groups.clone()),
        extra: Some(who.extra.clone()).filter(|extra| !extra.is_empty()),
        resource_attributes: (!is_path).then(resource),
        non_resource_attributes: is_path.then(path),
    }
}
