//! Patching: read, change, replace, and again if somebody was quicker. JSON and merge patches
//! for all kinds, strategic merge patches for Kubernetes' own, server-side apply for all.

use crate::body;
use crate::computed;
use crate::query::FieldValidation;
use crate::update::Attempt;
use crate::write::{RETRIES, Writer, Written};
use bytes::Bytes;
use http::HeaderMap;
use muster_kind::object::{meta, metadata_mut};
use muster_kind::parse::{self, Fields, ParseError};
use muster_kind::{Budget, FieldError, Object, Status};
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
        let media = body::media_type(headers);
        if self.options.force && media != "application/apply-patch+yaml" {
            return Err(options_invalid(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            )));
        }
        match media.as_str() {
            "application/json-patch+json" => {
                let budget = Budget::default();
                let parsed = parse::read(bytes, Fields::default(), &budget).map_err(undecodable)?;
                self.tree_bytes = budget.spent();
                let mut list = match parsed.object.tree {
                    Value::Array(list) => list,
                    other => return Err(wrong_patch(&other, "[]handlers.jsonPatchOp")),
                };
                if list.len() > OPERATIONS {
                    return Err(Status::too_large(format!(
                        "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}",
                        list.len()
                    )));
                }
                self.judge_operations(&list)?;
                let ignored = computed::strip_operations(&self.target.served.kind, &mut list);
                self.warnings.extend(ignored);
                let operations = json_patch::read(Value::Array(list));
                Ok(Patch::Json(operations.map_err(|_| rejected())?))
            }
            "application/merge-patch+json" => Ok(Patch::Merge(self.document(bytes)?)),
            "application/strategic-merge-patch+json" if kind.builtin => {
                Ok(Patch::Strategic(self.document(bytes)?.tree))
            }
            "application/apply-patch+yaml" => self.read_apply(bytes),
            _ if kind.builtin => {
                let mut status = Status::unsupported_media_type("415: Unsupported Media Type");
                status.details = true;
                Err(status)
            }
            _ => Err(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }

    fn read_apply(&mut self, bytes: &Bytes) -> Result<Patch, Status> {
        let kind = &self.target.served.kind;
        if self.options.manager.is_empty() {
            return Err(options_invalid(FieldError::required(
                "fieldManager",
                "is required for apply patch",
            )));
        }
        let budget = Budget::default();
        let parsed = body::yaml(bytes, kind, &budget).map_err(|status| match status.code {
            400 => Status::bad_request(format!("error decoding YAML: {}", status.message)),
            _ => status,
        })?;
        self.tree_bytes = budget.spent();
        self.warn_skipped(&parsed.skipped);
        let object = parsed.object;
        if !object.tree.is_object() {
            return Err(Status::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: {}",
                unmarshal(&object.tree, "map[string]interface {}")
            )));
        }
        self.check_applied(&object.tree)?;
        self.warnings.extend(body::judge(
            self.options.validation,
            &parsed.duplicates,
            &[],
        )?);
        Ok(Patch::Apply(object))
    }

    /// Fields of an operation that JSON patch does not know.
    fn judge_operations(&mut self, operations: &[Value]) -> Result<(), Status> {
        let known = ["op", "path", "from", "value"];
        let unknown: Vec<String> = operations
            .iter()
            .enumerate()
            .filter_map(|(index, operation)| Some((index, operation.as_object()?)))
            .flat_map(|(index, operation)| {
                operation
                    .keys()
                    .filter(|key| !known.contains(&key.as_str()))
                    .map(move |key| format!("json patch unknown field \"[{index}].{key}\""))
            })
            .collect();
        match self.options.validation {
            _ if unknown.is_empty() => {}
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(unknown),
            FieldValidation::Strict => {
                return Err(strict(&self.storage_text(), &unknown.join(", ")));
            }
        }
        Ok(())
    }

    fn document(&mut self, bytes: &Bytes) -> Result<Object, Status> {
        let budget = Budget::default();
        let fields = Fields::of(&self.target.served.kind);
        let parsed = parse::read(bytes, fields, &budget).map_err(undecodable)?;
        self.tree_bytes = budget.spent();
        self.warn_skipped(&parsed.skipped);
        if parsed.object.tree.is_null() {
            return Err(Status::bad_request("Invalid JSON Patch"));
        }
        if !parsed.object.tree.is_object() {
            return Err(wrong_patch(&parsed.object.tree, "map[string]interface {}"));
        }
        let judged = body::judge(self.options.validation, &parsed.duplicates, &[]);
        let shown = self.storage_text();
        self.warnings
            .extend(judged.map_err(|status| strict_status(&shown, &status.message))?);
        Ok(parsed.object)
    }

    /// What a patched object starts with where an error shows it.
    fn storage_text(&self) -> String {
        json!({"apiVersion": self.target.api_version(), "kind": self.target.served.kind.kind})
            .to_string()
    }

    fn check_applied(&self, tree: &Value) -> Result<(), Status> {
        let target = self.target;
        let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
        let (found, kind) = (text("apiVersion"), text("kind"));
        if found != target.api_version() || kind != target.served.kind.kind {
            let version = if found.contains('/') {
                found.to_owned()
            } else {
                format!("/{found}")
            };
            return Err(Status::bad_request(format!(
                "invalid object type: {version}, Kind={kind}"
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
            let tree = target.served.tree(&old.body, old.revision);
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
                json_patch::apply(&mut object.tree, operations).map_err(|_| rejected())?;
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
        let warnings = body::judge(self.options.validation, &[], &unknown)
            .map_err(|status| strict_status(&object.tree.to_string(), &status.message))?;
        self.check_kind(&object.tree)?;
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
        self.may_create().await?;
        let mut object = self.apply(None, applied)?;
        self.clean(&mut object)?;
        let metadata = metadata_mut(&mut object.tree);
        // What is applied to nothing is made, whatever revision it names.
        metadata.remove("resourceVersion");
        metadata.insert("name".into(), json!(self.target.key.name));
        self.create(object, false).await
    }
}

fn undecodable(error: ParseError) -> Status {
    match error {
        ParseError::TooLarge(error) => body::too_large(error),
        ParseError::Json(error) => Status::bad_request(format!("error decoding patch: {error}")),
    }
}

fn wrong_patch(found: &Value, wanted: &str) -> Status {
    Status::bad_request(format!(
        "error decoding patch: {}",
        unmarshal(found, wanted)
    ))
}

fn unmarshal(found: &Value, wanted: &str) -> String {
    let found = match found {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// A JSON patch that does not fit; Kubernetes says no more than this.
fn rejected() -> Status {
    Status::unprocessable("the server rejected our request due to an error in our request")
}

fn strict(shown: &str, faults: &str) -> Status {
    strict_status(shown, &format!("strict decoding error: {faults}"))
}

/// A patch whose outcome a strict client would not want.
fn strict_status(shown: &str, why: &str) -> Status {
    let error = FieldError::invalid("patch", &json!(shown), why);
    Status::invalid("", "", "", vec![error])
}

fn options_invalid(error: FieldError) -> Status {
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
