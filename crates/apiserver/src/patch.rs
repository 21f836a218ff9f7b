//! Patching: read, change, replace, and again if somebody was quicker. JSON and merge patches
//! for all kinds, strategic merge patches for Kubernetes' own, server-side apply for all.

use crate::body;
use crate::update::Attempt;
use crate::write::{RETRIES, Writer, Written};
use bytes::Bytes;
use http::HeaderMap;
use muster_kind::object::{meta, metadata_mut};
use muster_kind::{Object, Status, parse};
use muster_merge::{ApplyError, ApplyRequest, json_patch, merge_patch, strategic};
use serde_json::{Value, json};

/// A patch that has been read.
pub(crate) enum Patch {
    Json(Vec<json_patch::Operation>),
    Merge(Object),
    Strategic(Value),
    Apply(Object),
}

/// More operations than this are refused.
const OPERATIONS: usize = 10_000;

impl Writer<'_> {
    /// Reads a patch by its content type.
    pub(crate) fn read_patch(
        &mut self,
        bytes: &Bytes,
        headers: &HeaderMap,
    ) -> Result<Patch, Status> {
        let kind = &self.target.served.kind;
        match body::media_type(headers).as_str() {
            "application/json-patch+json" => {
                let operations = json_patch::parse(bytes)
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                if operations.len() > OPERATIONS {
                    return Err(Status::too_large(format!(
                        "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}",
                        operations.len()
                    )));
                }
                Ok(Patch::Json(operations))
            }
            "application/merge-patch+json" => Ok(Patch::Merge(self.document(bytes)?)),
            "application/strategic-merge-patch+json" if kind.builtin => {
                Ok(Patch::Strategic(self.document(bytes)?.tree))
            }
            "application/apply-patch+yaml" => {
                if self.options.manager.is_empty() {
                    return Err(options_invalid(muster_kind::FieldError::required(
                        "fieldManager",
                        "is required for apply patch",
                    )));
                }
                let parsed = match parse::parse(bytes, &kind.opaque) {
                    Ok(parsed) => parsed,
                    Err(_) => parse::Parsed {
                        object: Object::seal(body::yaml(bytes)?, kind),
                        duplicates: Vec::new(),
                    },
                };
                let mut object = parsed.object;
                self.check_applied(&object.tree)?;
                let unknown = self.clean(&mut object)?;
                self.warnings.extend(body::judge(
                    self.options.validation,
                    &parsed.duplicates,
                    &unknown,
                )?);
                Ok(Patch::Apply(object))
            }
            _ => {
                let mut accepted = vec![
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if kind.builtin {
                    accepted.push("application/strategic-merge-patch+json");
                }
                accepted.extend(["application/apply-patch+yaml"]);
                Err(Status::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: {}",
                    accepted.join(", ")
                )))
            }
        }
    }

    fn document(&mut self, bytes: &Bytes) -> Result<Object, Status> {
        let parsed = parse::parse(bytes, &self.target.served.kind.opaque)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        if !parsed.object.tree.is_object() {
            return Err(Status::bad_request(
                "error decoding patch: the patch is not an object",
            ));
        }
        self.warnings.extend(body::judge(
            self.options.validation,
            &parsed.duplicates,
            &[],
        )?);
        Ok(parsed.object)
    }

    fn check_applied(&self, tree: &Value) -> Result<(), Status> {
        let target = self.target;
        let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
        let (found, kind) = (text("apiVersion"), text("kind"));
        if found != target.api_version() || kind != target.served.kind.kind {
            return Err(Status::bad_request(format!(
                "apiVersion and kind of the applied object must be {} and {}, found {found:?} and {kind:?}",
                target.api_version(),
                target.served.kind.kind
            )));
        }
        self.check_place(tree)
    }

    /// Patches an object. `true` if an apply made it.
    pub(crate) async fn patch(&mut self, patch: Patch) -> Result<(Written, bool), Status> {
        let target = self.target;
        for _ in 0..RETRIES {
            let current = self
                .server
                .store
                .get(&target.served.resource, &target.key)
                .await;
            let old = current.map_err(|error| target.failure(error))?;
            let Some(old) = old else {
                let Patch::Apply(applied) = &patch else {
                    return Err(target.not_found());
                };
                if !target.subresource.is_empty() {
                    return Err(target.not_found());
                }
                match self.apply_new(applied).await {
                    Err(status) if status.reason == "AlreadyExists" => continue,
                    other => return Ok((other?, true)),
                }
            };
            let tree = old.body.tree(old.revision);
            let (object, own) = match &patch {
                Patch::Apply(applied) => (self.apply(Some(&tree), applied)?, false),
                patch => (self.changed(&tree, patch)?, true),
            };
            self.check_place(&object.tree)?;
            let revision = meta(&object.tree, "resourceVersion");
            if !revision.is_empty() && revision != old.revision.to_string() {
                return Err(Status::modified(target.about(), &target.key.name));
            }
            match self.replace(&old, object, own).await {
                Ok(written) => return Ok((written, false)),
                Err(Attempt::Refused(status)) => return Err(status),
                Err(Attempt::Raced) => {}
            }
        }
        Err(Status::modified(target.about(), &target.key.name))
    }

    /// The object a patch makes of another.
    fn changed(&mut self, old: &Value, patch: &Patch) -> Result<Object, Status> {
        let served = &self.target.served;
        let mut object = Object::of(old.clone());
        match patch {
            Patch::Json(operations) => {
                json_patch::apply(&mut object.tree, operations)
                    .map_err(|error| Status::unprocessable(error.to_string()))?;
                object = reseal(object, old, served);
            }
            Patch::Merge(merge) => {
                merge_patch::apply(&mut object.tree, &merge.tree)
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                object.blobs = merge.blobs.clone();
            }
            Patch::Strategic(merge) => {
                strategic::apply(&mut object.tree, merge, served.root())
                    .map_err(|error| Status::bad_request(error.to_string()))?;
            }
            Patch::Apply(_) => {}
        }
        if !object.tree.is_object() {
            return Err(Status::bad_request(
                "the patched object is no longer an object",
            ));
        }
        let unknown = self.clean(&mut object)?;
        let warnings = body::judge(self.options.validation, &[], &unknown)?;
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        Ok(object)
    }

    fn apply(&self, live: Option<&Value>, applied: &Object) -> Result<Object, Status> {
        let subresource = self.target.subresource.as_str();
        let request = ApplyRequest {
            live,
            applied: &applied.tree,
            schema: self.target.served.root(),
            manager: &self.options.manager,
            force: self.options.force,
            api_version: &self.target.api_version(),
            subresource: Some(subresource).filter(|s| !s.is_empty()),
            now: &self.now,
            reset: self.reset_fields(),
        };
        match muster_merge::apply(request) {
            Ok(merged) => Ok(Object {
                tree: merged.object,
                blobs: applied.blobs.clone(),
            }),
            Err(ApplyError::BadRequest(message)) => Err(Status::bad_request(message)),
            Err(ApplyError::Invalid(message)) => Err(Status::unexplained(message)),
            Err(ApplyError::Conflicts(conflicts)) => {
                let causes = conflicts
                    .0
                    .iter()
                    .map(|c| (c.message(), c.path.to_string()))
                    .collect();
                Err(Status::apply_conflict(conflicts.to_string(), causes))
            }
        }
    }

    async fn apply_new(&mut self, applied: &Object) -> Result<Written, Status> {
        let mut object = self.apply(None, applied)?;
        if meta(&object.tree, "resourceVersion") != "" {
            return Err(Status::conflict(
                self.target.about(),
                &self.target.key.name,
                "the object does not exist",
            ));
        }
        let metadata = metadata_mut(&mut object.tree);
        metadata.insert("name".into(), json!(self.target.key.name));
        self.create(object, false).await
    }
}

fn options_invalid(error: muster_kind::FieldError) -> Status {
    Status::invalid("meta.k8s.io", "PatchOptions", "", vec![error])
}

/// A JSON patch may have put a plain value where an opaque field is; what it left alone is still
/// the digest it was.
fn reseal(object: Object, old: &Value, served: &crate::catalog::Served) -> Object {
    let untouched: Vec<_> = served
        .kind
        .opaque
        .iter()
        .filter(|path| path.get(old).is_some() && path.get(old) == path.get(&object.tree))
        .cloned()
        .collect();
    let mut kind = served.kind.clone();
    kind.opaque.retain(|path| !untouched.contains(path));
    Object::seal(object.tree, &kind)
}
