//! Replacing: an object becomes another one, on the state the client, or the patch, started from.

use crate::metadata;
use crate::query::parse_revision;
use crate::request::Verb;
use crate::store::{Change, Expect, StoreError, Stored, Write};
use crate::write::{RETRIES, Writer, Written, show_revision};
use muster_kind::object::{meta, metadata_mut};
use muster_kind::{FieldError, Object, Status};
use muster_merge::managed::MAX_ENTRIES;
use muster_merge::{Set, TooManyEntries, UpdateRequest, keep_times};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Why one attempt to replace an object did not succeed.
pub(crate) enum Attempt {
    /// Somebody was quicker: compute again from what is there now.
    Raced,
    /// It cannot be done.
    Refused(Status),
}

impl From<Status> for Attempt {
    fn from(status: Status) -> Self {
        Attempt::Refused(status)
    }
}

static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_fields(["status"]));
static ALL_BUT_STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_fields(["spec", "metadata"]));
static NAMESPACE: LazyLock<Set> = LazyLock::new(|| Set::of_fields(["status", "spec"]));
static NOTHING: LazyLock<Set> = LazyLock::new(Set::default);

impl Writer<'_> {
    /// Replaces an object by the one in a body (PUT). `true` if it was made.
    pub(crate) async fn update(&mut self, object: Object) -> Result<(Written, bool), Status> {
        self.check_place(&object.tree)?;
        let target = self.target;
        if meta(&object.tree, "name").is_empty() && !target.served.kind.builtin {
            return Err(Status::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                target.key.name
            )));
        }
        let expected = parse_revision(meta(&object.tree, "resourceVersion"))
            .map_err(|why| Status::unexplained(strip_field(&why)))?
            .filter(|revision| *revision > 0);
        for _ in 0..RETRIES {
            let current = self
                .server
                .store
                .get(&target.served.resource, &target.key)
                .await;
            let Some(old) = current.map_err(|e| target.failure(e))? else {
                if target.served.kind.create_on_update && target.subresource.is_empty() {
                    let mut object = object.clone();
                    let metadata = metadata_mut(&mut object.tree);
                    metadata.remove("resourceVersion");
                    metadata.insert("name".into(), json!(target.key.name));
                    return Ok((self.create(object, true).await?, true));
                }
                return Err(target.not_found());
            };
            if expected.is_some_and(|revision| revision != old.revision) {
                return Err(Status::modified(target.about(), &target.key.name));
            }
            if expected.is_none() && !target.served.kind.unconditional_update {
                let error = FieldError::invalid(
                    "metadata.resourceVersion",
                    &json!(0),
                    "must be specified for an update",
                );
                let kind = &target.served.kind;
                return Err(Status::invalid(
                    &kind.group,
                    &kind.plural,
                    &target.key.name,
                    vec![error],
                ));
            }
            self.check_uid(&object.tree, &target.served.tree(&old.body, old.revision))?;
            match self.replace(&old, object.clone(), true).await {
                Ok(written) => return Ok((written, false)),
                Err(Attempt::Refused(status)) => return Err(status),
                Err(Attempt::Raced) if expected.is_some() => {
                    return Err(Status::modified(target.about(), &target.key.name));
                }
                Err(Attempt::Raced) => {}
            }
        }
        Err(Status::modified(target.about(), &target.key.name))
    }

    /// One attempt to make the stored object into `new`. `own` is false where an apply has
    /// settled the ownership already.
    pub(crate) async fn replace(
        &mut self,
        old: &Stored,
        new: Object,
        own: bool,
    ) -> Result<Written, Attempt> {
        let target = self.target;
        let kind = &target.served.kind;
        let old_tree = target.served.tree(&old.body, old.revision);
        let mut object = new;
        self.confine(&mut object.tree, &old_tree);
        metadata::prepare_update(&mut object.tree, &old_tree);
        self.admit(Verb::Update, Some(&mut object), Some(&old_tree))
            .await?;
        self.validate(&mut object, Some(&old_tree))?;
        if own {
            self.own(Some(&old_tree), &mut object)?;
        }
        if kind.generation && spec_differs(&object.tree, &old_tree, kind.status) {
            let generation = old_tree["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default();
            metadata_mut(&mut object.tree).insert("generation".into(), json!(generation + 1));
        }
        object.tree["apiVersion"] = json!(target.served.storage_version());
        object.tree["kind"] = json!(kind.kind);
        show_revision(&mut object.tree, Some(old.revision));
        keep_times(&old_tree, &mut object.tree);
        if object.tree == old_tree {
            return Ok(Written::Object(old.clone()));
        }
        let ends = metadata::is_deleting(&old_tree) && crate::delete::may_go(&object.tree, kind);
        if ends && !self.options.dry_run {
            return self.end(old, object).await;
        }
        self.check_size(&object, Some(old))?;
        match self.store(object, Some(old)).await {
            Ok(written) => Ok(written),
            Err(StoreError::Conflict | StoreError::Missing) => Err(Attempt::Raced),
            Err(error) => Err(Attempt::Refused(target.failure(error))),
        }
    }

    /// The last finalizer is gone, and with it the object. The client sees the state that let it
    /// go, watchers the one before, as in Kubernetes.
    async fn end(&self, old: &Stored, object: Object) -> Result<Written, Attempt> {
        let body = self.target.served.body(&object);
        let write = Write {
            resource: self.target.served.resource.clone(),
            key: self.target.key.clone(),
            expect: Expect::Revision(old.revision),
            change: Change::Delete {
                body: old.body.clone(),
            },
        };
        match self.server.store.write(write).await {
            Ok(_) => {
                self.server.collector.wake();
                Ok(Written::Object(Stored {
                    key: old.key.clone(),
                    revision: old.revision,
                    body,
                }))
            }
            Err(StoreError::Conflict | StoreError::Missing) => Err(Attempt::Raced),
            Err(error) => Err(Attempt::Refused(self.target.failure(error))),
        }
    }

    fn check_uid(&self, new: &Value, old: &Value) -> Result<(), Status> {
        let (sent, uid) = (meta(new, "uid"), meta(old, "uid"));
        if !sent.is_empty() && sent != uid {
            let why = format!(
                "Precondition failed: UID in precondition: {sent}, UID in object meta: {uid}"
            );
            return Err(Status::conflict(
                self.target.about(),
                &self.target.key.name,
                &why,
            ));
        }
        Ok(())
    }

    /// Keeps what this endpoint does not reach: a status endpoint changes only the status, the
    /// main one everything else, `finalize` only a namespace's own finalizers.
    fn confine(&self, new: &mut Value, old: &Value) {
        let keep = |new: &mut Value, name: &str, from: &Value| {
            let Some(root) = new.as_object_mut() else {
                return;
            };
            match from.get(name) {
                Some(value) => root.insert(name.into(), value.clone()),
                None => root.remove(name),
            };
        };
        match self.target.subresource.as_str() {
            "status" => {
                let sent = new.clone();
                *new = old.clone();
                keep(new, "status", &sent);
                if let Some(fields) = sent["metadata"].get("managedFields") {
                    metadata_mut(new).insert("managedFields".into(), fields.clone());
                }
            }
            "finalize" => {
                let sent = new.clone();
                *new = old.clone();
                let finalizers = sent["spec"].get("finalizers").cloned();
                new["spec"]["finalizers"] = finalizers.unwrap_or_else(|| json!([]));
            }
            _ if self.target.served.kind.status => keep(new, "status", old),
            _ => {}
        }
    }

    /// Fields that a write through this endpoint does not own.
    pub(crate) fn reset_fields(&self) -> &'static Set {
        match self.target.subresource.as_str() {
            "status" => &ALL_BUT_STATUS,
            "finalize" => &STATUS,
            // A namespace's own finalizer is the server's.
            _ if crate::discovery::is_namespace(&self.target.served.kind) => &NAMESPACE,
            _ if self.target.served.kind.status => &STATUS,
            _ => &NOTHING,
        }
    }

    /// Brings `metadata.managedFields` up to date with who writes what.
    pub(crate) fn own(&self, old: Option<&Value>, object: &mut Object) -> Result<(), Status> {
        // A typed object has its parts before anybody writes them, so nobody owns their presence.
        let mut typed = json!({});
        if self.target.served.kind.builtin {
            for part in ["spec", "status"]
                .iter()
                .filter(|part| object.tree.get(*part).is_some())
            {
                typed[*part] = json!({});
            }
        }
        let old = old.or(Some(&typed).filter(|_| self.target.served.kind.builtin));
        let subresource = self.target.subresource.as_str();
        let name = meta(&object.tree, "name").to_owned();
        let owned = muster_merge::update(UpdateRequest {
            live: old,
            new: std::mem::take(&mut object.tree),
            schema: self.target.served.root(),
            manager: &self.manager,
            api_version: &self.target.api_version(),
            subresource: Some(subresource).filter(|s| !s.is_empty()),
            now: &self.now,
            reset: self.reset_fields(),
        });
        object.tree = owned.map_err(|TooManyEntries { count }| {
            let error = FieldError::too_many("metadata.managedFields", count, MAX_ENTRIES);
            let kind = &self.target.served.kind;
            Status::invalid(&kind.group, &kind.kind, &name, vec![error])
        })?;
        Ok(())
    }
}

/// A body's revision is told about without the name of its field.
fn strip_field(why: &str) -> String {
    why.find("strconv").map_or(why, |at| &why[at..]).to_owned()
}

/// Whether anything but metadata (and status, where it is a world of its own) differs.
fn spec_differs(new: &Value, old: &Value, has_status: bool) -> bool {
    let part = |tree: &Value| {
        let mut map = tree.as_object().cloned().unwrap_or_default();
        for name in ["metadata", "apiVersion", "kind"] {
            map.remove(name);
        }
        if has_status {
            map.remove("status");
        }
        map
    };
    part(new) != part(old)
}
