//! The life of namespaces: nothing new comes into one that is missing or ending, and one that
//! ends takes its content with it. Where the server does not serve namespaces itself, somebody
//! else keeps them, and this module has nothing to say.

use crate::admission::Review;
use crate::delete::{DeleteOptions, Propagation};
use crate::index::DELETING;
use crate::request::Verb;
use crate::server::Server;
use crate::store::{Key, ListQuery, Resource, StoreError};
use crate::update::Attempt;
use crate::{discovery, garbage};
use muster_kind::selector::{FieldSelector, FieldTerm, LabelSelector};
use muster_kind::status::About;
use muster_kind::{Object, Status};
use serde_json::{Value, json};
use std::sync::Arc;

const ABOUT: About<'static> = About {
    group: "",
    resource: "namespaces",
};
/// These are always there.
pub(crate) const IMMORTAL: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The rules of namespaces for one write.
pub(crate) async fn admit(
    server: &Server,
    review: &Review<'_>,
    _new: Option<&Value>,
) -> Result<(), Status> {
    let is_namespace = discovery::is_namespace(review.kind);
    if is_namespace && review.verb == Verb::Delete && IMMORTAL.contains(&review.name) {
        return Err(Status::forbidden(
            ABOUT,
            review.name,
            "this namespace may not be deleted",
        ));
    }
    if review.verb != Verb::Create || review.namespace.is_empty() || !server.keeps_namespaces {
        return Ok(());
    }
    let key = Key {
        namespace: String::new(),
        name: review.namespace.into(),
    };
    let found = server.store.get(&Resource::from("namespaces"), &key).await;
    let Some(namespace) = found.map_err(crate::failure::store_failure)? else {
        return Err(review.namespace_missing());
    };
    if memchr(&namespace.body.text, b"\"deletionTimestamp\"") {
        return Err(review.namespace_ends());
    }
    Ok(())
}

/// Whether the bytes hold a key; a label of that name at worst costs a parse.
fn memchr(text: &[u8], key: &[u8]) -> bool {
    text.windows(key.len()).any(|window| window == key)
        && serde_json::from_slice::<Value>(text)
            .is_ok_and(|tree| tree["metadata"].get("deletionTimestamp").is_some())
}

/// Objects of a resource that wait for their finalizers.
pub(crate) async fn deleting(
    server: &Server,
    resource: &Resource,
) -> Result<Vec<crate::store::Stored>, StoreError> {
    let term = FieldTerm {
        field: DELETING.into(),
        value: "true".into(),
        equal: true,
    };
    let query = ListQuery {
        resource: resource.clone(),
        namespace: None,
        labels: LabelSelector::default(),
        fields: FieldSelector(vec![term]),
        at: None,
        after: None,
        limit: 10_000,
    };
    Ok(server.store.list(query).await?.items)
}

/// Empties namespaces that end, and lets go of those that are empty. True if anything changed.
pub(crate) async fn end_namespaces(server: &Arc<Server>) -> Result<bool, StoreError> {
    if !server.keeps_namespaces {
        return Ok(false);
    }
    let mut progress = false;
    for namespace in deleting(server, &Resource::from("namespaces")).await? {
        let name = namespace.key.name.clone();
        let mut left = 0_usize;
        for served in server
            .catalog
            .kinds()
            .iter()
            .filter(|served| served.kind.is_namespaced())
        {
            let query = ListQuery {
                resource: served.resource.clone(),
                namespace: Some(name.clone()),
                labels: LabelSelector::default(),
                fields: FieldSelector::default(),
                at: None,
                after: None,
                limit: 500,
            };
            let page = server.store.list(query).await?;
            left += page.items.len();
            for stored in page.items {
                let tree = served.tree(&stored.body, stored.revision);
                if crate::metadata::is_deleting(&tree) {
                    continue;
                }
                let options = DeleteOptions {
                    propagation: Some(Propagation::Background),
                    uid: None,
                    revision: None,
                    dry_run: false,
                };
                progress |= garbage::delete(server, served, stored.key, &options).await;
            }
        }
        if left == 0 {
            progress |= finalize(server, namespace).await;
        }
    }
    Ok(progress)
}

/// Takes the namespace's own finalizer away; without others it is gone.
async fn finalize(server: &Arc<Server>, namespace: crate::store::Stored) -> bool {
    let Some(served) = server.catalog.resource("namespaces").cloned() else {
        return false;
    };
    let mut tree = served.tree(&namespace.body, namespace.revision);
    if tree["spec"]["finalizers"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        return false;
    }
    tree["spec"]["finalizers"] = json!([]);
    let target = garbage::target(&served, namespace.key.clone(), "finalize");
    let mut writer = garbage::writer(server, &target);
    match writer.replace(&namespace, Object::of(tree), true).await {
        Ok(written) => written.is_change_of(&namespace),
        Err(Attempt::Raced) => true,
        Err(Attempt::Refused(status)) => {
            tracing::warn!(namespace = namespace.key.name, %status, "ending a namespace");
            false
        }
    }
}
