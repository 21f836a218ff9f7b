//! Server-side apply: a configuration is merged into the live object; its manager owns what it
//! names, loses what it no longer names, and may not change what others own unless it insists.

use crate::compare::{Comparison, compare};
use crate::conflict::{Conflict, Conflicts};
use crate::last_applied;
use crate::managed::{Entry, Managed, Operation};
use crate::prune::prune;
use crate::set::Set;
use crate::typed::{merge, to_set};
use crate::update::{record, without_unowned};
use crate::validate::validate;
use muster_kind::Schema;
use serde_json::{Map, Value};
use std::fmt;

/// A configuration to apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// The object before, if there is one.
    pub live: Option<&'a Value>,
    /// The configuration.
    pub applied: &'a Value,
    /// The schema of the whole object, `apiVersion`, `kind` and `metadata` included.
    pub schema: &'a Schema,
    /// Who applies.
    pub manager: &'a str,
    /// Take what others own.
    pub force: bool,
    /// The version of the request.
    pub api_version: &'a str,
    /// The subresource applied through.
    pub subresource: Option<&'a str>,
    /// The time, RFC 3339.
    pub now: &'a str,
    /// Fields such requests do not reach, and therefore do not own: `status` for the object
    /// itself, `spec` and `metadata` for its status.
    pub reset: &'a Set,
}

/// The outcome of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The merged object with its `metadata.managedFields`.
    pub object: Value,
    /// Whether it differs from the live one in anything.
    pub changed: bool,
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// The request makes no sense (400).
    BadRequest(String),
    /// The configuration or the object does not fit the schema (kube-apiserver answers 500).
    Invalid(String),
    /// Others own what would change (409).
    Conflicts(Conflicts),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::BadRequest(message) | ApplyError::Invalid(message) => f.write_str(message),
            ApplyError::Conflicts(conflicts) => write!(f, "{conflicts}"),
        }
    }
}

impl std::error::Error for ApplyError {}

/// Applies a configuration.
pub fn apply(request: ApplyRequest<'_>) -> Result<Applied, ApplyError> {
    check(&request)?;
    let mut object = match attempt(&request) {
        Err(ApplyError::Conflicts(conflicts)) if request.manager == last_applied::MANAGER => {
            match last_applied::remaining(&request, conflicts) {
                Some(conflicts) => return Err(ApplyError::Conflicts(conflicts)),
                None => attempt(&ApplyRequest {
                    force: true,
                    ..request
                })?,
            }
        }
        outcome => outcome?,
    };
    if request.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, request.applied);
    }
    let changed = request.live != Some(&object);
    Ok(Applied { object, changed })
}

fn check(request: &ApplyRequest<'_>) -> Result<(), ApplyError> {
    let applied = request.applied;
    if applied["metadata"]
        .get("managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".into(),
        ));
    }
    let version = applied["apiVersion"].as_str().unwrap_or_default();
    if version != request.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, \
             expected: {}",
            request.api_version,
        )));
    }
    validate(applied, request.schema).map_err(|violations| {
        let name = describe(applied);
        ApplyError::Invalid(format!(
            "failed to create typed patch object ({name}): {violations}"
        ))
    })
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let slash = if version.contains('/') { "" } else { "/" };
    let (namespace, name) = (
        &object["metadata"]["namespace"],
        &object["metadata"]["name"],
    );
    let kind = text(&object["kind"]);
    format!(
        "{}/{}; {slash}{version}, Kind={kind}",
        text(namespace),
        text(name)
    )
}

fn attempt(request: &ApplyRequest<'_>) -> Result<Value, ApplyError> {
    let nothing = Value::Object(Map::new());
    let live = request.live.unwrap_or(&nothing);
    let schema = request.schema;
    let mut managed = managers(request, live)?;

    let mut owner = Entry {
        manager: request.manager.into(),
        operation: Operation::Apply,
        api_version: request.api_version.into(),
        time: None,
        subresource: request.subresource.unwrap_or_default().into(),
        fields: to_set(request.applied, schema).recursive_difference(request.reset),
    };
    managed.drop_oldest(&owner);
    let before = managed.take(&owner);
    owner.time = before.as_ref().and_then(|entry| entry.time.clone());

    let mut object = merge(live, request.applied, schema);
    let last = before.map(|entry| entry.fields).unwrap_or_default();
    // Most applies leave nothing out that they named before.
    if !last.clone().difference(&owner.fields).is_empty() {
        let all = managed
            .entries
            .iter()
            .fold(owner.fields.clone(), |all, entry| {
                all.union(entry.fields.clone())
            });
        // Pruning drops what it empties; what is applied empty is meant to be there.
        object = merge(&prune(object, last, all, schema), request.applied, schema);
    }

    let comparison = compare(live, &object, schema).excluding(request.reset);
    let conflicts = conflicts(&managed, &comparison);
    if !request.force && !conflicts.0.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    managed.disown(&comparison);
    owner.fields = without_unowned(owner.fields);
    if object != *live {
        owner.time = Some(request.now.into());
    }
    if !owner.fields.is_empty() {
        managed.entries.push(owner.clone());
    }
    managed.drop_oldest(&owner);
    managed.store(&mut object);
    Ok(object)
}

/// The managers of the live object. What nobody was known to own belongs, at the first apply, to
/// whoever wrote it before.
fn managers(request: &ApplyRequest<'_>, live: &Value) -> Result<Managed, ApplyError> {
    let mut managed = Managed::of(live).map_err(|problem| {
        ApplyError::Invalid(format!("failed to decode managed fields: {problem}"))
    })?;
    if managed.entries.is_empty() {
        let writer = Entry {
            manager: "before-first-apply".into(),
            operation: Operation::Update,
            api_version: request.api_version.into(),
            time: Some(request.now.into()),
            subresource: request.subresource.unwrap_or_default().into(),
            fields: Set::default(),
        };
        record(
            &mut managed,
            writer,
            None,
            live,
            request.schema,
            request.reset,
        );
    }
    for entry in &mut managed.entries {
        entry.fields = std::mem::take(&mut entry.fields).reconciled(request.schema);
    }
    Ok(managed)
}

fn conflicts(managed: &Managed, comparison: &Comparison) -> Conflicts {
    let changed = comparison.modified.clone().union(comparison.added.clone());
    let mut entries: Vec<&Entry> = managed.entries.iter().collect();
    entries.sort_by_key(|entry| {
        (
            &entry.manager,
            entry.operation,
            &entry.api_version,
            &entry.subresource,
        )
    });
    let conflicts = entries.into_iter().flat_map(|entry| {
        let paths = entry.fields.intersection(&changed).paths();
        paths.into_iter().map(|path| Conflict::new(entry, path))
    });
    Conflicts(conflicts.collect())
}
