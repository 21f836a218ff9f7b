//! Owner references kept true: what nobody owns any more goes (background), owners that wait for
//! their dependents get them removed first (foreground), or let them stay (orphan). The state
//! decides: every pass looks at what the store says, a wake-up only says that it is worth looking.

use crate::catalog::Served;
use crate::delete::{DeleteOptions, Propagation};
use crate::identity::Identity;
use crate::metadata::{self, FOREGROUND, ORPHAN};
use crate::namespaces;
use crate::query::{FieldValidation, WriteOptions};
use crate::server::Server;
use crate::store::{Key, StoreError, Stored};
use crate::update::Attempt;
use crate::write::{Target, Writer};
use muster_kind::Object;
use muster_kind::object::{meta, metadata_mut};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Notify;

/// The state is looked at this often even if nothing is said to have changed.
const INTERVAL: Duration = Duration::from_secs(30);
/// At most so many looks in a row.
const PASSES: usize = 100;

static COLLECTOR: LazyLock<Identity> = LazyLock::new(|| {
    Identity::new(
        "system:serviceaccount:kube-system:generic-garbage-collector",
        &[
            "system:serviceaccounts",
            "system:serviceaccounts:kube-system",
            "system:authenticated",
        ],
    )
});

/// The bell of the collector.
#[derive(Default)]
pub(crate) struct Collector(Notify);

impl Collector {
    /// Something may have become garbage.
    pub(crate) fn wake(&self) {
        self.0.notify_one();
    }
}

/// Collects until the server stops.
pub(crate) async fn run(server: Arc<Server>) {
    loop {
        // A bound, lest a mistake here keep a processor busy for good.
        for _ in 0..PASSES {
            match pass(&server).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "collecting garbage");
                    break;
                }
            }
            if server.stop.is_cancelled() {
                return;
            }
        }
        tokio::select! {
            () = server.stop.cancelled() => return,
            () = server.collector.0.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// One look at everything; true if something changed, so that another look is worth it.
async fn pass(server: &Arc<Server>) -> Result<bool, StoreError> {
    let mut progress = false;
    for (resource, key) in server.store.dangling(10_000).await? {
        let Some(served) = server.catalog.resource(&resource).cloned() else {
            continue;
        };
        progress |= collect(server, &served, &key).await?;
    }
    for served in server.catalog.kinds() {
        for stored in namespaces::deleting(server, &served.resource).await? {
            progress |= propagate(server, served, &stored).await?;
        }
    }
    Ok(progress | namespaces::end_namespaces(server).await?)
}

/// An object some of whose owners are gone: it goes with the last, else forgets the gone ones.
async fn collect(
    server: &Arc<Server>,
    served: &Arc<Served>,
    key: &Key,
) -> Result<bool, StoreError> {
    let Some(stored) = server.store.get(&served.resource, key).await? else {
        return Ok(false);
    };
    let tree = served.tree(&stored.body, stored.revision);
    let mut remaining = Vec::new();
    for owner in metadata::list(&tree, "ownerReferences") {
        let uid = owner["uid"].as_str().unwrap_or_default();
        // Owners of kinds we do not serve live elsewhere; we cannot know that they are gone.
        if !serves(server, owner) || server.store.uid_exists(uid).await? {
            remaining.push(owner.clone());
        }
    }
    if remaining.len() == metadata::list(&tree, "ownerReferences").len() {
        return Ok(false);
    }
    if !remaining.is_empty() {
        return Ok(set_owners(server, served, &stored, tree, remaining).await);
    }
    if metadata::is_deleting(&tree) {
        return Ok(false);
    }
    let options = DeleteOptions {
        propagation: None,
        uid: Some(meta(&tree, "uid").into()),
        revision: Some(stored.revision.to_string()),
        dry_run: false,
    };
    Ok(delete(server, served, key.clone(), &options).await)
}

fn serves(server: &Server, owner: &Value) -> bool {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let group = text("apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    server
        .catalog
        .kinds()
        .iter()
        .any(|s| s.kind.group == group && s.kind.kind == text("kind"))
}

/// What a deleted object with an `orphan` or `foregroundDeletion` finalizer waits for.
async fn propagate(
    server: &Arc<Server>,
    served: &Arc<Served>,
    stored: &Stored,
) -> Result<bool, StoreError> {
    let tree = served.tree(&stored.body, stored.revision);
    let finalizers = metadata::list(&tree, "finalizers");
    let finalizer = if finalizers.contains(&json!(ORPHAN)) {
        ORPHAN
    } else if finalizers.contains(&json!(FOREGROUND)) {
        FOREGROUND
    } else {
        return Ok(false);
    };
    let uid = meta(&tree, "uid").to_owned();
    let mut progress = false;
    let mut blocked = false;
    for (resource, key) in server.store.owned(&uid, 10_000).await? {
        let Some(served) = server.catalog.resource(&resource).cloned() else {
            continue;
        };
        let Some(dependent) = server.store.get(&resource, &key).await? else {
            continue;
        };
        let tree = served.tree(&dependent.body, dependent.revision);
        let owners = metadata::list(&tree, "ownerReferences");
        if finalizer == ORPHAN {
            let others = owners
                .iter()
                .filter(|o| o["uid"] != json!(uid))
                .cloned()
                .collect();
            blocked |= !set_owners(server, &served, &dependent, tree, others).await;
            progress = true;
            continue;
        }
        blocked |= owners
            .iter()
            .any(|o| o["uid"] == json!(uid) && o["blockOwnerDeletion"] == json!(true));
        if !metadata::is_deleting(&tree) {
            let has_dependents = !server.store.owned(meta(&tree, "uid"), 1).await?.is_empty();
            let options = DeleteOptions {
                propagation: has_dependents.then_some(Propagation::Foreground),
                uid: Some(meta(&tree, "uid").into()),
                revision: None,
                dry_run: false,
            };
            progress |= delete(server, &served, key, &options).await;
        }
    }
    if blocked {
        return Ok(progress);
    }
    let finalizers: Vec<Value> = finalizers
        .iter()
        .filter(|f| **f != finalizer)
        .cloned()
        .collect();
    let mut object = Object::of(tree.clone());
    metadata_mut(&mut object.tree).insert("finalizers".into(), json!(finalizers));
    Ok(replace(server, served, stored, object).await)
}

async fn set_owners(
    server: &Arc<Server>,
    served: &Arc<Served>,
    stored: &Stored,
    tree: Value,
    owners: Vec<Value>,
) -> bool {
    let mut object = Object::of(tree);
    metadata_mut(&mut object.tree).insert("ownerReferences".into(), json!(owners));
    replace(server, served, stored, object).await
}

async fn replace(server: &Arc<Server>, served: &Arc<Served>, old: &Stored, new: Object) -> bool {
    let target = target(served, old.key.clone(), "");
    match writer(server, &target).replace(old, new, true).await {
        Ok(written) => written.is_change_of(old),
        Err(Attempt::Raced) => true,
        Err(Attempt::Refused(status)) => {
            tracing::warn!(resource = %served.resource, name = old.key.name, %status, "garbage");
            false
        }
    }
}

/// Deletes as the collector; true if anything changed.
pub(crate) async fn delete(
    server: &Arc<Server>,
    served: &Arc<Served>,
    key: Key,
    options: &DeleteOptions,
) -> bool {
    let target = target(served, key, "");
    match writer(server, &target).delete(options).await {
        Ok(_) => true,
        Err(status) if matches!(status.code, 404 | 409) => true,
        Err(status) => {
            tracing::warn!(resource = %served.resource, name = target.key.name, %status, "garbage");
            false
        }
    }
}

/// The target of a duty of our own.
pub(crate) fn target(served: &Arc<Served>, key: Key, subresource: &str) -> Target {
    Target {
        served: served.clone(),
        version: served.kind.versions[0].clone(),
        key,
        subresource: subresource.into(),
    }
}

/// A writer for a duty of our own.
pub(crate) fn writer<'a>(server: &'a Server, target: &'a Target) -> Writer<'a> {
    Writer {
        server,
        target,
        who: &COLLECTOR,
        options: WriteOptions {
            dry_run: false,
            manager: String::new(),
            validation: FieldValidation::Ignore,
            force: false,
        },
        manager: "kube-controller-manager".into(),
        now: muster_kind::time::now(),
        warnings: Vec::new(),
        tree_bytes: 0,
    }
}
