//! What a standalone server does to Kubernetes' own kinds that a cluster's API server would do:
//! the few defaults that clients rely on.

use async_trait::async_trait;
use muster_apiserver::admission::{Admission, Review};
use muster_kind::Status;
use serde_json::Value;

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
