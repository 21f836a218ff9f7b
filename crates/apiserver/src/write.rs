//! The page every write goes through: decode, prepare, admit, validate, own, store. Creating,
//! updating, patching and deleting are short stories told with these steps. Writes are
//! compare-and-swap: whatever was computed from a state is stored only on that state.

use crate::admission::Review;
use crate::body;
use crate::catalog::Served;
use crate::identity::Identity;
use crate::query::WriteOptions;
use crate::request::Verb;
use crate::server::Server;
use crate::store::{Change, Expect, Index, Key, StoreError, Stored, Write};
use crate::{metadata, namespaces};
use bytes::Bytes;
use http::HeaderMap;
use muster_kind::object::{meta, metadata_mut};
use muster_kind::status::About;
use muster_kind::{Digest, FieldError, Kind, Object, Status, structural};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a write that lost a race is computed again.
pub(crate) const RETRIES: usize = 16;

/// The object a request is about.
pub(crate) struct Target {
    pub(crate) served: Arc<Served>,
    pub(crate) version: String,
    pub(crate) key: Key,
    pub(crate) subresource: String,
}

impl Target {
    pub(crate) fn about(&self) -> About<'_> {
        About {
            group: &self.served.kind.group,
            resource: &self.served.kind.plural,
        }
    }
    pub(crate) fn api_version(&self) -> String {
        self.served.kind.api_version(&self.version)
    }
    pub(crate) fn storage_version(&self) -> String {
        self.served.kind.api_version(&self.served.kind.versions[0])
    }
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.about(), &self.key.name)
    }
    /// The status for a store that did not do what it was asked.
    pub(crate) fn failure(&self, error: StoreError) -> Status {
        match error {
            StoreError::Exists => Status::already_exists(self.about(), &self.key.name),
            StoreError::Missing => self.not_found(),
            StoreError::Conflict => Status::modified(self.about(), &self.key.name),
            other => store_failure(other),
        }
    }
}

/// The status for a store that failed whatever the object.
pub(crate) fn store_failure(error: StoreError) -> Status {
    match error {
        StoreError::Future { asked, current } => Status::future_revision(asked, current),
        StoreError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        StoreError::Full => Status::unavailable(
            "the disk is full: nothing was written; free some space and try again",
        ),
        StoreError::Closed => Status::unavailable("the server is shutting down"),
        other => {
            let mut text = other.to_string();
            let mut source = std::error::Error::source(&other);
            while let Some(error) = source {
                text = format!("{text}: {error}");
                source = error.source();
            }
            tracing::error!(error = %text, "store");
            Status::internal(text)
        }
    }
}

/// Who writes, how, and what the client is warned of.
pub(crate) struct Writer<'a> {
    pub(crate) server: &'a Server,
    pub(crate) target: &'a Target,
    pub(crate) who: &'a Identity,
    pub(crate) options: WriteOptions,
    pub(crate) manager: String,
    pub(crate) now: String,
    pub(crate) warnings: Vec<String>,
}

/// The name under which fields are owned: what the client says, or its program's name.
pub(crate) fn manager(options: &WriteOptions, headers: &HeaderMap) -> String {
    if !options.manager.is_empty() {
        return options.manager.clone();
    }
    let agent = headers
        .get(http::header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let name: String = agent
        .split('/')
        .next()
        .unwrap_or("")
        .chars()
        .take(128)
        .collect();
    if name.is_empty() {
        "unknown".into()
    } else {
        name
    }
}

/// What became of a write.
pub(crate) enum Written {
    /// The object as it is now.
    Object(Stored),
    /// The object as it would be: nothing was kept.
    Dry(Object, Option<u64>),
}

impl<'a> Writer<'a> {
    /// Decodes a body to an object of the target's kind: right version and kind, known fields.
    pub(crate) fn decode(&mut self, bytes: &Bytes, headers: &HeaderMap) -> Result<Object, Status> {
        let kind = &self.target.served.kind;
        let encoding = body::encoding(headers, kind.builtin)?;
        let parsed = body::decode(bytes, encoding, kind, self.server.protobuf)?;
        let mut object = parsed.object;
        self.check_type(&object.tree)?;
        let unknown = self.clean(&mut object)?;
        self.warnings.extend(body::judge(
            self.options.validation,
            &parsed.duplicates,
            &unknown,
        )?);
        Ok(object)
    }

    /// The body must say which version and kind it is, and be of this endpoint's.
    fn check_type(&self, tree: &Value) -> Result<(), Status> {
        let kind = &self.target.served.kind;
        let Some(map) = tree.as_object() else {
            return Err(Status::bad_request(
                "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct",
            ));
        };
        let text = |field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, name) = (text("apiVersion"), text("kind"));
        if kind.builtin {
            // Typed kinds are defaulted from the endpoint.
            let expected = self.target.api_version();
            if (!name.is_empty() && name != kind.kind)
                || (!api_version.is_empty() && api_version != expected)
            {
                let version = if api_version.is_empty() {
                    &expected
                } else {
                    api_version
                };
                let found = if name.is_empty() { &kind.kind } else { name };
                return Err(Status::bad_request(format!(
                    "{found} in version {:?} cannot be handled as a {}: no kind {found:?} is registered for version {version:?}",
                    version.rsplit('/').next().unwrap_or_default(),
                    kind.kind
                )));
            }
            return Ok(());
        }
        if name.is_empty() {
            return Err(Status::bad_request(
                "Object 'Kind' is missing in the request body",
            ));
        }
        if api_version.is_empty() {
            return Err(Status::bad_request(
                "Object 'apiVersion' is missing in the request body",
            ));
        }
        if !kind
            .versions
            .iter()
            .any(|version| kind.api_version(version) == api_version)
        {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                self.target.api_version()
            )));
        }
        if name != kind.kind {
            return Err(Status::bad_request(format!(
                "{name} in version {:?} cannot be handled as a {}",
                self.target.version, kind.kind
            )));
        }
        Ok(())
    }

    /// Prunes, and reads `metadata` as the typed thing it is; returns what was unknown.
    pub(crate) fn clean(&self, object: &mut Object) -> Result<Vec<String>, Status> {
        let served = &self.target.served;
        let unknown = structural::prune(&mut object.tree, served.root());
        if served.kind.builtin {
            structural::drop_nulls(&mut object.tree, served.root());
            if let Some(error) = typed_error(&object.tree, served) {
                return Err(error);
            }
        } else if let Some(value) = object.tree.get_mut("metadata") {
            structural::drop_nulls(value, &muster_kind::openapi::OBJECT_META);
            let wrong = structural::validate(value, &muster_kind::openapi::OBJECT_META);
            if let Some(error) = wrong.first() {
                return Err(Status::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: metadata.{}: {}",
                    served.kind.kind,
                    self.target.version,
                    served.kind.kind,
                    error.field,
                    error.message
                )));
            }
        }
        Ok(unknown)
    }

    /// Runs the server's and the kind's rules on a new object.
    pub(crate) async fn admit(
        &mut self,
        verb: Verb,
        object: Option<&mut Object>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let review = Review {
            kind: &self.target.served.kind,
            verb,
            namespace: &self.target.key.namespace,
            name: &self.target.key.name,
            subresource: &self.target.subresource,
            who: self.who,
            old,
            dry_run: self.options.dry_run,
        };
        namespaces::admit(self.server, &review, object.as_deref().map(|o| &o.tree)).await?;
        let mut tree = object.map(|object| &mut object.tree);
        for admission in &self.server.admissions {
            self.warnings
                .extend(admission.admit(&review, tree.as_deref_mut()).await?);
        }
        Ok(())
    }

    /// Fills in defaults and judges the object.
    pub(crate) fn validate(&self, object: &mut Object, old: Option<&Value>) -> Result<(), Status> {
        let served = &self.target.served;
        let kind = &served.kind;
        if !kind.builtin {
            structural::set_defaults(&mut object.tree, &kind.schema);
        }
        let mut errors = match old {
            None => metadata::validate(&object.tree, kind),
            Some(old) => metadata::validate_update(&object.tree, old, kind),
        };
        if !kind.builtin {
            let wrong = structural::validate(&object.tree, &kind.schema);
            errors.extend(
                wrong
                    .into_iter()
                    .filter(|wrong| !is_sealed(wrong, object, kind)),
            );
        }
        // The kind's own rules may take the schema's for granted.
        if errors.is_empty()
            && let Some(validator) = kind.validator
        {
            errors.extend(validator(&object.tree, old));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(
            &kind.group,
            &kind.kind,
            meta(&object.tree, "name"),
            errors,
        ))
    }

    /// Stores the object on the state it was computed from.
    pub(crate) async fn store(
        &self,
        object: Object,
        old: Option<&Stored>,
    ) -> Result<Written, StoreError> {
        if self.options.dry_run {
            let revision = old.map(|old| old.revision);
            return Ok(Written::Dry(object, revision));
        }
        let served = &self.target.served;
        let mut object = object;
        object.tree["apiVersion"] = json!(self.target.storage_version());
        object.tree["kind"] = json!(served.kind.kind);
        let key = Key {
            name: meta(&object.tree, "name").into(),
            ..self.target.key.clone()
        };
        let body = object.body(&served.kind);
        let write = Write {
            resource: served.resource.clone(),
            key: key.clone(),
            expect: old.map_or(Expect::Absent, |old| Expect::Revision(old.revision)),
            change: Change::Put {
                body: body.clone(),
                index: index(&object.tree, served),
                blobs: object.blobs,
            },
        };
        let revision = self.server.store.write(write).await?;
        Ok(Written::Object(Stored {
            key,
            revision,
            body,
        }))
    }
}

/// A value of the wrong type in a typed kind is a body that cannot be read.
fn typed_error(tree: &Value, served: &Served) -> Option<Status> {
    let wrong = structural::validate(tree, served.root());
    let error = wrong
        .iter()
        .find(|error| error.reason == "FieldValueTypeInvalid")?;
    let kind = &served.kind.kind;
    let version = &served.kind.versions[0];
    let found = error.message.split('"').nth(1).unwrap_or_default();
    let found = match found {
        "integer" | "number" => "number",
        "boolean" => "bool",
        other => other,
    };
    let expected = error
        .message
        .split("must be of type ")
        .nth(1)
        .unwrap_or_default();
    let expected = match expected.split(':').next().unwrap_or_default() {
        "boolean" => "bool",
        "integer" => "int32",
        other => other,
    };
    let field = error.field.split('[').next().unwrap_or_default();
    Some(Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: json: cannot unmarshal {found} into Go struct field {kind}.{field} of type {expected}"
    )))
}

/// The internal field by which objects that wait for their finalizers are found again.
pub(crate) const DELETING: &str = ".deleting";

/// What the store indexes of an object.
pub(crate) fn index(tree: &Value, served: &Served) -> Index {
    let mut fields: BTreeMap<String, String> = served
        .kind
        .selectable
        .iter()
        .filter_map(|path| Some((path.to_string(), served.field(tree, path)?)))
        .collect();
    if metadata::is_deleting(tree) {
        fields.insert(DELETING.into(), "true".into());
    }
    Index {
        uid: meta(tree, "uid").into(),
        labels: labels(tree),
        fields,
        owners: metadata::list(tree, "ownerReferences")
            .iter()
            .filter_map(|owner| owner.get("uid")?.as_str().map(Into::into))
            .collect(),
    }
}

/// The labels of an object.
pub(crate) fn labels(tree: &Value) -> BTreeMap<String, String> {
    muster_kind::object::metadata(tree)
        .and_then(|m| m.get("labels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Sets the resource version a client sees in a tree.
pub(crate) fn show_revision(tree: &mut Value, revision: Option<u64>) {
    let metadata = metadata_mut(tree);
    match revision {
        Some(revision) => metadata.insert("resourceVersion".into(), json!(revision.to_string())),
        None => metadata.remove("resourceVersion"),
    };
}

/// Whether an error is only about the digest that stands for an opaque field in a tree. Of what
/// the field really holds its first byte says the type; what is there already was judged before.
fn is_sealed(error: &FieldError, object: &Object, kind: &Kind) -> bool {
    let Some(path) = kind.opaque.iter().find(|p| p.to_string() == error.field) else {
        return false;
    };
    let digest = path.get(&object.tree).and_then(Value::as_str);
    let Some(digest) = digest.and_then(Digest::parse) else {
        return false;
    };
    let wanted = match error.message.contains("must be of type array") {
        true => b'[',
        false => b'{',
    };
    let first = object.blobs.get(&digest).map(|bytes| bytes.first());
    first.is_none_or(|first| first == Some(&wanted))
}
