//! The page every write goes through: decode, prepare, admit, validate, own, store. Creating,
//! updating, patching and deleting are short stories told with these steps. Writes are
//! compare-and-swap: whatever was computed from a state is stored only on that state.

use crate::admission::Review;
use crate::body;
use crate::catalog::Served;
use crate::failure::store_failure;
use crate::identity::Identity;
use crate::index::index;
use crate::query::WriteOptions;
use crate::request::Verb;
use crate::server::Server;
use crate::store::{Change, Expect, Key, StoreError, Stored, Write};
use crate::{computed, metadata, namespaces, typed};
use bytes::Bytes;
use http::HeaderMap;
use muster_kind::kind::SIZE_LIMIT;
use muster_kind::object::{meta, metadata_mut};
use muster_kind::schema::Type;
use muster_kind::status::About;
use muster_kind::{Budget, Digest, FieldError, Kind, Object, Status, openapi, structural};
use serde_json::{Value, json};
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

/// Who writes, how, and what the client is warned of.
pub(crate) struct Writer<'a> {
    pub(crate) server: &'a Server,
    pub(crate) target: &'a Target,
    pub(crate) who: &'a Identity,
    pub(crate) options: WriteOptions,
    pub(crate) manager: String,
    pub(crate) now: String,
    pub(crate) warnings: Vec<String>,
    /// What the body that was decoded takes in memory.
    pub(crate) tree_bytes: usize,
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

impl Written {
    /// Whether anything but a deletion (which wakes whoever waits for it) has come of it.
    pub(crate) fn is_change_of(&self, old: &Stored) -> bool {
        matches!(self, Written::Object(new) if new.revision != old.revision)
    }
}

impl<'a> Writer<'a> {
    /// Decodes a body to an object of the target's kind: right version and kind, known fields.
    pub(crate) fn decode(&mut self, bytes: &Bytes, headers: &HeaderMap) -> Result<Object, Status> {
        let kind = &self.target.served.kind;
        let encoding = body::encoding(headers)?;
        let budget = Budget::default();
        let parsed = body::decode(bytes, encoding, kind, self.server.protobuf, &budget)?;
        self.tree_bytes = budget.spent();
        self.warn_skipped(&parsed.skipped);
        let mut object = parsed.object;
        self.check_type(&object.tree, bytes)?;
        self.check_kind(&object.tree)?;
        let unknown = self.clean(&mut object)?;
        let judged = body::judge(self.options.validation, &parsed.duplicates, &unknown);
        self.warnings
            .extend(judged.map_err(|status| self.unhandled(&status.message))?);
        Ok(object)
    }

    /// The body must say which version and kind it is, and be of this endpoint's.
    fn check_type(&self, tree: &Value, bytes: &[u8]) -> Result<(), Status> {
        let kind = &self.target.served.kind;
        let Some(map) = tree.as_object() else {
            let why = match tree {
                Value::Null => "Object 'Kind' is missing in 'null'".to_owned(),
                Value::Array(_) => not_struct("array"),
                Value::String(_) => not_struct("string"),
                Value::Bool(_) => not_struct("bool"),
                _ => not_struct("number"),
            };
            return Err(body::unrecognized(kind, bytes, &why));
        };
        let text = |field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, name) = (text("apiVersion"), text("kind"));
        if api_version.matches('/').count() > 1 {
            let why = format!("unexpected GroupVersion string: {api_version}");
            return Err(body::unrecognized(kind, bytes, &why));
        }
        if kind.builtin {
            return self.check_registered(api_version, name);
        }
        if name.is_empty() {
            let why = format!(
                "Object 'Kind' is missing in '{}'",
                String::from_utf8_lossy(bytes)
            );
            return Err(body::unrecognized(kind, bytes, &why));
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
        Ok(())
    }

    /// A typed body may leave out what the endpoint says.
    fn check_registered(&self, api_version: &str, name: &str) -> Result<(), Status> {
        let kind = &self.target.served.kind;
        let expected = self.target.api_version();
        let version = if api_version.is_empty() {
            &expected
        } else {
            api_version
        };
        let found = if name.is_empty() { &kind.kind } else { name };
        if found == kind.kind && version == expected {
            return Ok(());
        }
        let short = version.rsplit('/').next().unwrap_or_default();
        let registered = self.server.catalog.kinds().iter().any(|served| {
            let other = &served.kind;
            other.builtin
                && other.kind == found
                && other
                    .versions
                    .iter()
                    .any(|v| other.api_version(v) == version)
        });
        let why = if registered {
            let group = kind
                .group
                .split('.')
                .next()
                .filter(|g| !g.is_empty())
                .unwrap_or("core");
            format!(
                "converting ({short}.{found}) to ({group}.{}): unknown conversion",
                kind.kind
            )
        } else {
            format!(
                "no kind {found:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        Err(Status::bad_request(format!(
            "{found} in version {short:?} cannot be handled as a {}: {why}",
            kind.kind
        )))
    }

    /// An object of another kind than the endpoint's is invalid.
    pub(crate) fn check_kind(&self, tree: &Value) -> Result<(), Status> {
        let kind = &self.target.served.kind;
        let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, found) = (text("apiVersion"), text("kind"));
        if kind.builtin {
            return Ok(());
        }
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let mut errors = Vec::new();
        if found != kind.kind {
            let must = format!("must be {}", kind.kind);
            errors.push(FieldError::invalid("kind", &json!(found), &must));
        }
        if !kind
            .versions
            .iter()
            .any(|version| kind.api_version(version) == api_version)
        {
            let must = format!("must be {}", self.target.api_version());
            errors.push(FieldError::invalid(
                "apiVersion",
                &json!(api_version),
                &must,
            ));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(group, found, meta(tree, "name"), errors))
    }

    fn unhandled(&self, why: &str) -> Status {
        let kind = &self.target.served.kind.kind;
        let version = &self.target.version;
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    }

    /// Prunes, and reads what is typed as such; returns what was unknown.
    pub(crate) fn clean(&mut self, object: &mut Object) -> Result<Vec<String>, Status> {
        let served = &self.target.served;
        self.drop_computed(&mut object.tree);
        let unknown = structural::prune(&mut object.tree, served.root());
        if served.kind.builtin {
            if let Some(why) = typed::fault(&object.tree, served.root(), &served.kind.kind) {
                return Err(self.unhandled(&why));
            }
            structural::as_typed(&mut object.tree, served.root());
            for part in ["spec", "status"] {
                let typed = served.kind.schema.properties.get(part);
                if typed.is_some_and(|s| s.of == Type::Object) && object.tree.get(part).is_none() {
                    object.tree[part] = json!({});
                }
            }
            return Ok(unknown);
        }
        if let Some(value) = object.tree.get_mut("metadata") {
            if let Some(why) = typed::fault(value, &openapi::OBJECT_META, "ObjectMeta") {
                return Err(self.unhandled(&why));
            }
            structural::drop_nulls(value, &openapi::OBJECT_META);
        }
        structural::drop_nulls(&mut object.tree, &served.kind.schema);
        structural::whole_numbers(&mut object.tree, &served.kind.schema);
        Ok(unknown)
    }

    /// Drops what the store computes, and warns of it once.
    pub(crate) fn drop_computed(&mut self, tree: &mut Value) {
        let warning = computed::strip(&self.target.served.kind, tree);
        let new = warning.filter(|warning| !self.warnings.contains(warning));
        self.warnings.extend(new);
    }

    /// Warns of computed fields that were sent and skipped.
    pub(crate) fn warn_skipped(&mut self, skipped: &[String]) {
        let warning = computed::skipped(&self.target.served.kind, skipped);
        self.warnings.extend(warning);
    }

    /// What is kept of an object beside its opaque fields has the ordinary limit. One that was stored larger
    /// may become smaller.
    pub(crate) fn check_size(&self, object: &Object, old: Option<&Stored>) -> Result<(), Status> {
        let served = &self.target.served;
        if served.kind.size_limit <= SIZE_LIMIT {
            return Ok(());
        }
        let size = served.body(object).text.len();
        let limit = old.map_or(SIZE_LIMIT, |old| SIZE_LIMIT.max(old.body.text.len()));
        if size <= limit {
            return Ok(());
        }
        Err(Status::too_large(format!(
            "Request entity too large: {} \"{}\" would take {size} bytes, limit is {SIZE_LIMIT}; shorten its lists or split it into several objects",
            self.target.about(),
            meta(&object.tree, "name")
        )))
    }

    /// Runs the server's and the kind's rules on a new object.
    pub(crate) async fn admit(
        &mut self,
        verb: Verb,
        object: Option<&mut Object>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let name = match object.as_deref() {
            Some(object) => meta(&object.tree, "name").to_owned(),
            None => self.target.key.name.clone(),
        };
        let review = Review {
            kind: &self.target.served.kind,
            verb,
            namespace: &self.target.key.namespace,
            name: &name,
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
            let wrong = self.schema_errors(&object.tree);
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

    /// A status written through its own door is judged by itself, and its faults are told so.
    fn schema_errors(&self, tree: &Value) -> Vec<FieldError> {
        let schema = &self.target.served.kind.schema;
        let Some(status) = schema
            .properties
            .get("status")
            .filter(|_| self.target.subresource == "status")
        else {
            return structural::validate(tree, schema);
        };
        let mut errors = match &tree["status"] {
            Value::Null => Vec::new(),
            value => structural::validate(value, status),
        };
        for error in &mut errors {
            error.field = match error.field.as_str() {
                "<nil>" | "" => "status".into(),
                field => format!("status.{field}"),
            };
        }
        errors
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
        let key = Key {
            name: meta(&object.tree, "name").into(),
            ..self.target.key.clone()
        };
        let body = served.body(&object);
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

fn not_struct(found: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
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
