//! Structural schemas: the one description of a kind's fields from which validation, defaulting,
//! pruning, merging, OpenAPI documents and CRD manifests are derived. A schema is a plain tree;
//! shared parts (`ObjectMeta`, `PodSpec`) are shared by `Arc` and may carry a component name,
//! so that OpenAPI can refer to them instead of repeating them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The JSON type a value must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Any JSON value.
    #[default]
    Any,
    /// A JSON object, with named properties or with values of one schema.
    Object,
    /// A JSON array.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
}

/// How the items of an array are told apart when two writers' arrays meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// The array is one value, replaced whole.
    #[default]
    Atomic,
    /// Every item is its own key.
    Set,
    /// Items are objects told apart by these fields.
    Map(Vec<String>),
}

/// What a strategic merge patch does with an array or object (built-in kinds only).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategic {
    /// The field by which items of a merged array are told apart; empty for arrays of scalars.
    pub merge_key: Option<String>,
    /// Arrays are merged instead of replaced.
    pub merge: bool,
    /// Only the keys the patch names are kept (`retainKeys`).
    pub retain_keys: bool,
}

/// The schema of one value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The name under which OpenAPI documents refer to this schema, if it is a shared one.
    pub component: Option<String>,
    /// What the field is for, in a sentence or two.
    pub description: String,
    /// The JSON type.
    pub of: Type,
    /// Named fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// The schema of an object's values where keys are free.
    pub additional: Option<Arc<Schema>>,
    /// The schema of an array's items.
    pub items: Option<Arc<Schema>>,
    /// Properties that must be present.
    pub required: Vec<String>,
    /// `null` is a value of this field and is kept.
    pub nullable: bool,
    /// The value an absent field takes.
    pub default: Option<Value>,
    /// The only values allowed; empty means all.
    pub one_of: Vec<Value>,
    /// A format such as `date-time`, `int32`, `byte`.
    pub format: Option<String>,
    /// A regular expression a string must match.
    pub pattern: Option<String>,
    /// The least number allowed.
    pub minimum: Option<f64>,
    /// The greatest number allowed.
    pub maximum: Option<f64>,
    /// The least length of a string.
    pub min_length: Option<usize>,
    /// The greatest length of a string.
    pub max_length: Option<usize>,
    /// The least number of items.
    pub min_items: Option<usize>,
    /// The greatest number of items.
    pub max_items: Option<usize>,
    /// The greatest number of properties.
    pub max_properties: Option<usize>,
    /// Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// The value is a whole Kubernetes object (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// How arrays of two writers are merged.
    pub list: ListType,
    /// The object is one value, replaced whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// What a strategic merge patch does here.
    pub strategic: Strategic,
}

/// An object with the fields added later by [`Schema::field`] and [`Schema::required`].
pub fn object() -> Schema {
    Schema {
        of: Type::Object,
        ..Default::default()
    }
}
/// An object with free keys and values of one schema.
pub fn map(values: Schema) -> Schema {
    Schema {
        of: Type::Object,
        additional: Some(Arc::new(values)),
        ..Default::default()
    }
}
/// An array replaced whole.
pub fn list(items: Schema) -> Schema {
    Schema {
        of: Type::Array,
        items: Some(Arc::new(items)),
        ..Default::default()
    }
}
/// A string.
pub fn string() -> Schema {
    Schema {
        of: Type::String,
        ..Default::default()
    }
}
/// A whole number of 32 bits.
pub fn int32() -> Schema {
    Schema {
        of: Type::Integer,
        format: Some("int32".into()),
        ..Default::default()
    }
}
/// A whole number of 64 bits.
pub fn int64() -> Schema {
    Schema {
        of: Type::Integer,
        format: Some("int64".into()),
        ..Default::default()
    }
}
/// A number.
pub fn number() -> Schema {
    Schema {
        of: Type::Number,
        ..Default::default()
    }
}
/// `true` or `false`.
pub fn boolean() -> Schema {
    Schema {
        of: Type::Boolean,
        ..Default::default()
    }
}
/// A point in time, RFC 3339.
pub fn timestamp() -> Schema {
    string().format("date-time")
}
/// Any JSON value, kept as it is.
pub fn any() -> Schema {
    Schema {
        preserve_unknown: true,
        ..Default::default()
    }
}
/// An object of any shape, kept as it is.
pub fn any_object() -> Schema {
    Schema {
        of: Type::Object,
        preserve_unknown: true,
        ..Default::default()
    }
}

impl Schema {
    /// Says what the value is for.
    pub fn describe(mut self, text: &str) -> Self {
        self.description = text.into();
        self
    }
    /// Adds an optional field.
    pub fn field(mut self, name: &str, schema: Schema) -> Self {
        self.properties.insert(name.into(), Arc::new(schema));
        self
    }
    /// Adds a field that must be present.
    pub fn required(mut self, name: &str, schema: Schema) -> Self {
        self.required.push(name.into());
        self.field(name, schema)
    }
    /// Sets the value an absent field takes.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }
    /// Restricts the value to these strings.
    pub fn one_of<'a>(mut self, values: impl IntoIterator<Item = &'a str>) -> Self {
        self.one_of = values.into_iter().map(Value::from).collect();
        self
    }
    /// Sets the format.
    pub fn format(mut self, format: &str) -> Self {
        self.format = Some(format.into());
        self
    }
    /// Sets the regular expression a string must match.
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.into());
        self
    }
    /// Sets the least and greatest number allowed.
    pub fn range(mut self, minimum: f64, maximum: f64) -> Self {
        self.minimum = Some(minimum);
        self.maximum = Some(maximum);
        self
    }
    /// Sets the least number allowed.
    pub fn at_least(mut self, minimum: f64) -> Self {
        self.minimum = Some(minimum);
        self
    }
    /// Sets the least and greatest length of a string.
    pub fn length(mut self, minimum: usize, maximum: usize) -> Self {
        self.min_length = Some(minimum);
        self.max_length = Some(maximum);
        self
    }
    /// Sets the greatest number of items.
    pub fn at_most(mut self, items: usize) -> Self {
        self.max_items = Some(items);
        self
    }
    /// Sets the least number of items.
    pub fn min_items(mut self, items: usize) -> Self {
        self.min_items = Some(items);
        self
    }
    /// `null` is a value of this field.
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }
    /// Items are objects told apart by these fields.
    pub fn keyed_by<'a>(mut self, keys: impl IntoIterator<Item = &'a str>) -> Self {
        self.list = ListType::Map(keys.into_iter().map(String::from).collect());
        self
    }
    /// Every item is its own key.
    pub fn set(mut self) -> Self {
        self.list = ListType::Set;
        self
    }
    /// The object is one value for patch and apply.
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }
    /// Names the schema for OpenAPI.
    pub fn named(mut self, component: &str) -> Self {
        self.component = Some(component.into());
        self
    }

    /// The schema of a property, whether named or free.
    pub fn property(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.get(name).or(self.additional.as_ref())
    }
    /// Fields not described here are kept.
    pub fn keeps_unknown(&self) -> bool {
        self.preserve_unknown || (self.of == Type::Any)
    }
}
