//! Deleting: an object without finalizers goes at once, another waits for them. Propagation
//! policies are finalizers that the garbage collector serves.

use crate::body::{self, ProtobufDecoder};
use crate::discovery;
use crate::metadata::{self, FOREGROUND, ORPHAN};
use crate::query::Query;
use crate::request::Verb;
use crate::store::{Change, Expect, StoreError, Stored, Write};
use crate::write::{RETRIES, Writer, Written};
use bytes::Bytes;
use http::HeaderMap;
use muster_kind::kind::FieldError;
use muster_kind::object::{meta, metadata_mut};
use muster_kind::status::About;
use muster_kind::{Kind, Object, Status};
use serde_json::{Value, json};

/// What happens to an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug)]
pub(crate) struct DeleteOptions {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Reads the options from the body or, without one, from the query.
    pub(crate) fn read(
        query: &Query,
        bytes: &Bytes,
        headers: &HeaderMap,
        protobuf: ProtobufDecoder,
    ) -> Result<Self, Status> {
        let mut value = json!({});
        if !bytes.is_empty() {
            value = body::decode_plain(bytes, body::encoding(headers)?, protobuf)?;
        } else {
            for key in ["propagationPolicy"] {
                if query.has(key) {
                    value[key] = json!(query.get(key));
                }
            }
            if query.has("orphanDependents") {
                value["orphanDependents"] = json!(query.flag("orphanDependents"));
            }
            if query.has("dryRun") {
                value["dryRun"] = json!(query.all("dryRun"));
            }
        }
        Self::from_value(&value, query)
    }

    fn from_value(value: &Value, query: &Query) -> Result<Self, Status> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("kind"), "" | "DeleteOptions") {
            return Err(Status::bad_request(format!(
                "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
                text("kind"),
                text("apiVersion")
            )));
        }
        let grace = query.get("gracePeriodSeconds");
        if !grace.is_empty() && grace.parse::<i64>().is_err() {
            return Err(Status::bad_request(format!(
                "strconv.ParseInt: parsing {grace:?}: invalid syntax"
            )));
        }
        if let Some(grace) = value
            .get("gracePeriodSeconds")
            .filter(|g| !g.is_i64() && !g.is_null())
        {
            let found = if grace.is_string() {
                "string"
            } else {
                "number"
            };
            return Err(Status::bad_request(format!(
                "json: cannot unmarshal {found} into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
            )));
        }
        let mut errors = Vec::new();
        let policy = value.get("propagationPolicy").filter(|v| !v.is_null());
        let orphan = value.get("orphanDependents").and_then(Value::as_bool);
        if policy.is_some() && orphan.is_some() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                policy.unwrap_or(&Value::Null),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let propagation = match policy.map(|p| p.as_str().unwrap_or_default()) {
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(_) => {
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    policy.unwrap_or(&Value::Null),
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
            None => orphan.map(|o| {
                if o {
                    Propagation::Orphan
                } else {
                    Propagation::Background
                }
            }),
        };
        let dry_run: Vec<String> = value
            .get("dryRun")
            .and_then(Value::as_array)
            .map(|items| {
                items
                    .iter()
                    .filter_map(|i| i.as_str().map(Into::into))
                    .collect()
            })
            .unwrap_or_else(|| query.all("dryRun").to_vec());
        if dry_run.iter().any(|value| value != "All") {
            errors.push(FieldError::not_supported(
                "dryRun",
                &json!(dry_run),
                &["All"],
            ));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", errors));
        }
        let precondition = |field: &str| {
            let value = value.get("preconditions")?.get(field)?.as_str()?;
            Some(value.to_owned())
        };
        Ok(DeleteOptions {
            propagation,
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            dry_run: !dry_run.is_empty(),
        })
    }
}

/// What a deletion left.
pub(crate) enum Deleted {
    /// Nothing; the object's UID.
    Gone(String),
    /// The object, waiting for its finalizers.
    Waiting(Written),
}

/// Whether nothing holds the object any more.
pub(crate) fn may_go(tree: &Value, kind: &Kind) -> bool {
    let own = discovery::is_namespace(kind)
        && tree["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
    metadata::list(tree, "finalizers").is_empty() && !own
}

impl Writer<'_> {
    /// Deletes the target.
    pub(crate) async fn delete(&mut self, options: &DeleteOptions) -> Result<Deleted, Status> {
        let target = self.target;
        for _ in 0..RETRIES {
            let current = self
                .server
                .store
                .get(&target.served.resource, &target.key)
                .await;
            let old = current
                .map_err(|e| target.failure(e))?
                .ok_or_else(|| target.not_found())?;
            let tree = target.served.tree(&old.body, old.revision);
            self.check_preconditions(options, &tree, old.revision)?;
            self.admit(Verb::Delete, None, Some(&tree)).await?;
            let mut object = Object::of(tree.clone());
            self.mark(&mut object.tree, options.propagation);
            let goes = may_go(&object.tree, &target.served.kind);
            let outcome = if goes {
                self.remove(&old, &tree).await
            } else if object.tree == tree {
                Ok(Deleted::Waiting(Written::Object(old)))
            } else {
                self.store(object, Some(&old)).await.map(Deleted::Waiting)
            };
            match outcome {
                Ok(deleted) => {
                    self.server.collector.wake();
                    return Ok(deleted);
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(target.failure(error)),
            }
        }
        Err(Status::modified(target.about(), &target.key.name))
    }

    async fn remove(&self, old: &Stored, tree: &Value) -> Result<Deleted, StoreError> {
        let uid = meta(tree, "uid").to_owned();
        if !self.options.dry_run {
            let write = Write {
                resource: self.target.served.resource.clone(),
                key: self.target.key.clone(),
                expect: Expect::Revision(old.revision),
                change: Change::Delete {
                    body: old.body.clone(),
                },
            };
            self.server.store.write(write).await?;
        }
        Ok(Deleted::Gone(uid))
    }

    fn check_preconditions(
        &self,
        options: &DeleteOptions,
        tree: &Value,
        revision: u64,
    ) -> Result<(), Status> {
        let target = self.target;
        let kind = &target.served.kind;
        // Custom objects are named by their kind here, and only here.
        let resource = if kind.builtin {
            &kind.plural
        } else {
            &kind.kind
        };
        let about = About {
            group: &kind.group,
            resource,
        };
        let conflict = |why: String| Status::conflict(about, &target.key.name, &why);
        let uid = meta(tree, "uid");
        if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
            return Err(conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            )));
        }
        if let Some(wanted) = options
            .revision
            .as_deref()
            .filter(|r| **r != revision.to_string())
        {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            )));
        }
        Ok(())
    }

    /// Marks an object as being deleted, with the finalizer its dependents need.
    fn mark(&self, tree: &mut Value, propagation: Option<Propagation>) {
        let kind = &self.target.served.kind;
        let mut finalizers: Vec<Value> = metadata::list(tree, "finalizers").to_vec();
        if propagation.is_some() {
            finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
        }
        match propagation {
            Some(Propagation::Orphan) => finalizers.push(json!(ORPHAN)),
            Some(Propagation::Foreground) => finalizers.push(json!(FOREGROUND)),
            _ => {}
        }
        let deleting = metadata::is_deleting(tree);
        let generation = tree["metadata"]["generation"].as_i64();
        let metadata = metadata_mut(tree);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        if deleting {
            return;
        }
        metadata.insert("deletionTimestamp".into(), json!(self.now));
        metadata.insert("deletionGracePeriodSeconds".into(), json!(0));
        if let Some(generation) = generation.filter(|_| kind.generation) {
            metadata.insert("generation".into(), json!(generation + 1));
        }
        if discovery::is_namespace(kind) {
            metadata.remove("deletionGracePeriodSeconds");
            tree["status"]["phase"] = json!("Terminating");
        }
    }
}

/// The success that answers a deletion.
pub(crate) fn success(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural, "uid": uid});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}
