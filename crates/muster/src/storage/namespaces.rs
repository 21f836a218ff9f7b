//! The life of namespaces that the cluster keeps: nothing new comes into one that is missing or
//! ending. The cluster's namespaces are followed; one that is not known yet is looked up.

use super::cache::ask;
use async_trait::async_trait;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use muster_apiserver::admission::{Admission, Review};
use muster_apiserver::request::Verb;
use muster_kind::Status;
use serde_json::Value;
use tokio::task::JoinHandle;

type Metadata = PartialObjectMeta<Namespace>;

/// The cluster's namespaces.
pub(super) struct Namespaces {
    known: Store<Metadata>,
    api: Api<Metadata>,
}

impl Namespaces {
    /// Follows the namespaces in a task.
    pub(super) fn follow(client: kube::Client) -> (Self, JoinHandle<()>) {
        let api: Api<Metadata> = Api::all(client);
        let (known, writer) = reflector::store();
        let stream = watcher(api.clone(), watcher::Config::default())
            .default_backoff()
            .reflect(writer)
            .touched_objects();
        let following = tokio::spawn(stream.for_each(async |next| {
            if let Err(error) = next {
                tracing::warn!(%error, "following the namespaces");
            }
        }));
        (Namespaces { known, api }, following)
    }

    /// Waits until it knows them all.
    pub(super) async fn wait(&self) {
        // The writer lives in the task; it is not gone before us.
        let _ = self.known.wait_until_ready().await;
    }

    /// Whether the namespace is ending; nothing if there is none.
    async fn is_ending(&self, name: &str) -> Result<Option<bool>, String> {
        if let Some(namespace) = self.known.get(&ObjectRef::new(name)) {
            return Ok(Some(namespace.metadata.deletion_timestamp.is_some()));
        }
        let found = ask(self.api.get_opt(name)).await?;
        Ok(found.map(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }
}

#[async_trait]
impl Admission for Namespaces {
    async fn admit(
        &self,
        review: &Review<'_>,
        _: Option<&mut Value>,
    ) -> Result<Vec<String>, Status> {
        if review.verb != Verb::Create || review.namespace.is_empty() {
            return Ok(Vec::new());
        }
        match self.is_ending(review.namespace).await {
            Ok(Some(false)) => Ok(Vec::new()),
            Ok(Some(true)) => Err(review.namespace_ends()),
            Ok(None) => Err(review.namespace_missing()),
            Err(error) => {
                tracing::warn!(error, "looking for a namespace");
                let mut status = Status::unavailable(format!(
                    "nobody can tell now whether the namespace {:?} exists",
                    review.namespace
                ));
                status.retry_after = Some(1);
                Err(status)
            }
        }
    }
}
