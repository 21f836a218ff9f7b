//! The description of a kind. Everything a server says about a kind (discovery, OpenAPI, tables,
//! selectors, CRDs, RBAC) is derived from this one value; adding a kind is adding a description.

use crate::{Column, FieldPath, Schema, name, schema};
use serde_json::Value;
use std::sync::Arc;

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Beside the namespaces.
    Cluster,
}

/// One thing wrong with an object: the field and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The cause's reason, as Kubernetes names it (`FieldValueInvalid`, ...).
    pub reason: &'static str,
    /// The path of the field, `spec.repositories[0].name`.
    pub field: String,
    /// The whole message without the field, `Invalid value: "x": must be a duration`.
    pub message: String,
}

/// Judges a new object, given the one it replaces.
pub type Validator = fn(new: &Value, old: Option<&Value>) -> Vec<FieldError>;

/// Judges a name; returns what is wrong with it.
pub type NameRule = fn(&str) -> Vec<String>;

/// Reads what a field selector compares: kind, path and object to text.
pub type FieldReader = fn(kind: &str, path: &str, object: &Value) -> String;

/// Names what an object is about; objects with an equal link belong together.
pub type Linker = fn(object: &Value) -> Vec<String>;

/// The description of a kind.
#[derive(Clone)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The served versions, preferred first; one schema serves them all.
    pub versions: Vec<String>,
    /// The kind, `Registry`.
    pub kind: String,
    /// The plural resource name, `registries`.
    pub plural: String,
    /// The singular resource name, `registry`.
    pub singular: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Namespaced or cluster-wide.
    pub scope: Scope,
    /// What the kind is for.
    pub description: String,
    /// The fields beside `apiVersion`, `kind` and `metadata`.
    pub schema: Arc<Schema>,
    /// The kind has a status subresource.
    pub status: bool,
    /// Columns of `kubectl get` between NAME and AGE as listed here; NAME is always first.
    pub columns: Vec<Column>,
    /// Fields that field selectors may name, beside `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<FieldPath>,
    /// Fields kept as bytes, never built as a tree, atomic for patch and apply.
    pub opaque: Vec<FieldPath>,
    /// Fields at the root that are never stored: the store computes them whenever it is read.
    pub computed: Vec<String>,
    /// What an object is linked by, for the kinds that are computed from others.
    pub linker: Option<Linker>,
    /// The owners of its objects live in another cluster: nobody here can tell that they are gone.
    pub owners_elsewhere: bool,
    /// The greatest request body, in bytes.
    pub size_limit: usize,
    /// `metadata.generation` is kept: 1 on create, more on every change outside status.
    pub generation: bool,
    /// The kind is one of Kubernetes' own: strategic merge patches are accepted, schema
    /// violations are decoding errors, and it is left out of the CRDs.
    pub builtin: bool,
    /// A replacement need not say which revision it replaces.
    pub unconditional_update: bool,
    /// A replacement of an absent object makes it.
    pub create_on_update: bool,
    /// How selectable fields are read where the path alone does not say it.
    pub field_reader: Option<FieldReader>,
    /// Names must satisfy this.
    pub name_rule: NameRule,
    /// The kind's own rules, after the schema's.
    pub validator: Option<Validator>,
}

/// The ordinary limit for a request body: what kube-apiserver allows.
pub const SIZE_LIMIT: usize = 3 * 1024 * 1024;

impl Kind {
    fn new(scope: Scope, group: &str, version: &str, kind: &str) -> Self {
        let singular = kind.to_lowercase();
        Kind {
            group: group.into(),
            versions: vec![version.into()],
            kind: kind.into(),
            plural: format!("{singular}s"),
            singular,
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            description: String::new(),
            schema: Arc::new(schema::object()),
            status: false,
            columns: Vec::new(),
            selectable: Vec::new(),
            opaque: Vec::new(),
            computed: Vec::new(),
            linker: None,
            owners_elsewhere: false,
            size_limit: SIZE_LIMIT,
            generation: true,
            builtin: false,
            unconditional_update: false,
            create_on_update: false,
            field_reader: None,
            name_rule: name::subdomain,
            validator: None,
        }
    }
    /// A kind whose objects live in namespaces.
    pub fn namespaced(group: &str, version: &str, kind: &str) -> Self {
        Kind::new(Scope::Namespaced, group, version, kind)
    }
    /// A kind whose objects live beside the namespaces.
    pub fn cluster(group: &str, version: &str, kind: &str) -> Self {
        Kind::new(Scope::Cluster, group, version, kind)
    }
    /// Says what the kind is for.
    pub fn describe(mut self, text: &str) -> Self {
        self.description = text.into();
        self
    }
    /// Serves a further version with the same schema.
    pub fn also(mut self, version: &str) -> Self {
        self.versions.push(version.into());
        self
    }
    /// Sets a plural that is not the kind with an `s`.
    pub fn plural(mut self, plural: &str) -> Self {
        self.plural = plural.into();
        self
    }
    /// Adds a short name.
    pub fn short(mut self, name: &str) -> Self {
        self.short_names.push(name.into());
        self
    }
    /// Adds a category.
    pub fn category(mut self, name: &str) -> Self {
        self.categories.push(name.into());
        self
    }
    /// Sets the fields (an object schema with `spec`, `status` or others at its root).
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Arc::new(schema);
        self
    }
    /// Gives the kind a status subresource.
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }
    /// Adds a printer column.
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }
    /// Lets field selectors name this field.
    pub fn selectable(mut self, path: &str) -> Self {
        self.selectable.push(FieldPath::parse(path));
        self
    }
    /// Keeps this field as bytes.
    pub fn opaque(mut self, path: &str) -> Self {
        self.opaque.push(FieldPath::parse(path));
        self
    }
    /// Leaves this field at the root to the store. What clients send of it is not even read.
    pub fn computed(mut self, field: &str) -> Self {
        self.computed.push(field.into());
        self.opaque(&format!(".{field}"))
    }
    /// Says what links an object.
    pub fn linked_by(mut self, linker: Linker) -> Self {
        self.linker = Some(linker);
        self
    }
    /// Sets the greatest request body.
    pub fn size_limit(mut self, bytes: usize) -> Self {
        self.size_limit = bytes;
        self
    }
    /// Adds the kind's own rules.
    pub fn validated_by(mut self, validator: Validator) -> Self {
        self.validator = Some(validator);
        self
    }

    /// `registries.sbomscanner.kubewarden.io`, or `configmaps` in the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
    /// `group/version`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.into()
        } else {
            format!("{}/{version}", self.group)
        }
    }
    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

impl FieldError {
    /// The value is not acceptable; `detail` says why.
    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        FieldError {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }
    /// A field that must be there is not.
    pub fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".into()
        } else {
            format!("Required value: {detail}")
        };
        FieldError {
            reason: "FieldValueRequired",
            field: field.into(),
            message,
        }
    }
    /// The field may not be set, or not be changed.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        FieldError {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {detail}"),
        }
    }
    /// The value is not one of those supported.
    pub fn not_supported(field: &str, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        FieldError {
            reason: "FieldValueNotSupported",
            field: field.into(),
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                list.join(", ")
            ),
        }
    }
    /// The value stands twice where it may stand once.
    pub fn duplicate(field: &str, value: &Value) -> Self {
        FieldError {
            reason: "FieldValueDuplicate",
            field: field.into(),
            message: format!("Duplicate value: {value}"),
        }
    }
    /// The list has more items than it may have.
    pub fn too_many(field: &str, count: usize, most: usize) -> Self {
        FieldError {
            reason: "FieldValueTooMany",
            field: field.into(),
            message: format!("Too many: {count}: must have at most {most} items"),
        }
    }
    /// The value has the wrong JSON type.
    pub fn type_invalid(field: &str, value: &Value, detail: &str) -> Self {
        FieldError {
            reason: "FieldValueTypeInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {detail}"),
        }
    }
}
