//! Schemas as JSON: the structural form of CRDs, and OpenAPI components that refer to each other
//! by name. Also the schema of `ObjectMeta`, which every kind shares.

use crate::schema::{ListType, Schema, Type, any, list, map, object, string, timestamp};
use crate::{Kind, schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The schema of `metadata`.
pub static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(object_meta()));

fn object_meta() -> Schema {
    let owner = object()
        .named(&format!("{META}OwnerReference"))
        .describe("An object that this one belongs to; when the last owner goes, this one goes.")
        .required(
            "apiVersion",
            string().describe("The owner's group and version."),
        )
        .required("kind", string().describe("The owner's kind."))
        .required("name", string().describe("The owner's name."))
        .required("uid", string().describe("The owner's UID."))
        .field(
            "controller",
            schema::boolean().describe("The owner manages this object."),
        )
        .field(
            "blockOwnerDeletion",
            schema::boolean().describe("A foreground deletion of the owner waits for this object."),
        )
        .atomic();
    let managed = object()
        .named(&format!("{META}ManagedFieldsEntry"))
        .describe("The fields one writer of this object owns.")
        .field(
            "apiVersion",
            string().describe("The version the fields are named in."),
        )
        .field(
            "fieldsType",
            string().describe("The form of the field set: FieldsV1."),
        )
        .field(
            "fieldsV1",
            schema::any_object()
                .named(&format!("{META}FieldsV1"))
                .describe("The field set."),
        )
        .field("manager", string().describe("The writer's name."))
        .field("operation", string().describe("Apply or Update."))
        .field(
            "subresource",
            string().describe("The subresource written through, if any."),
        )
        .field("time", timestamp().describe("When the set last changed."));
    let mut owners = list(owner).keyed_by(["uid"]);
    owners.strategic.merge = true;
    owners.strategic.merge_key = Some("uid".into());
    let mut finalizers = list(string()).set();
    finalizers.strategic.merge = true;
    object()
        .named(&format!("{META}ObjectMeta"))
        .describe("What every object carries: its name, labels, owners and history.")
        .field(
            "annotations",
            map(string()).describe("Free text for tools, by key."),
        )
        .field(
            "creationTimestamp",
            timestamp()
                .nullable()
                .describe("When the object came to be."),
        )
        .field(
            "deletionGracePeriodSeconds",
            schema::int64().describe("Seconds a deleted object is given to end."),
        )
        .field(
            "deletionTimestamp",
            timestamp()
                .nullable()
                .describe("When deletion was asked for."),
        )
        .field(
            "finalizers",
            finalizers.describe("Who must act before the object can go."),
        )
        .field(
            "generateName",
            string().describe("A prefix from which the server makes a unique name."),
        )
        .field(
            "generation",
            schema::int64().describe("Grows with every change of the spec."),
        )
        .field(
            "labels",
            map(string()).describe("Keys and values that selectors match."),
        )
        .field(
            "managedFields",
            list(managed).describe("Which writer owns which fields."),
        )
        .field(
            "name",
            string().describe("The name, unique within namespace and kind."),
        )
        .field(
            "namespace",
            string().describe("The namespace the object lives in."),
        )
        .field(
            "ownerReferences",
            owners.describe("What this object belongs to."),
        )
        .field(
            "resourceVersion",
            string().describe("The revision of the last change."),
        )
        .field(
            "selfLink",
            string().describe("Unused; kept for old clients."),
        )
        .field("uid", string().describe("Unique in time and space."))
}

fn list_meta() -> Schema {
    object()
        .named(&format!("{META}ListMeta"))
        .describe("What every list carries.")
        .field(
            "continue",
            string().describe("The token that asks for the next page."),
        )
        .field(
            "remainingItemCount",
            schema::int64().describe("How many items follow this page."),
        )
        .field(
            "resourceVersion",
            string().describe("The revision the list shows."),
        )
        .field(
            "selfLink",
            string().describe("Unused; kept for old clients."),
        )
}

/// The whole schema of an object of this kind: `apiVersion`, `kind`, `metadata` and its fields.
pub fn root_schema(kind: &Kind) -> Schema {
    let mut root = (*kind.schema).clone();
    root.of = Type::Object;
    for (name, text) in [
        ("apiVersion", "The group and version of the object's form."),
        ("kind", "The kind of the object."),
    ] {
        root.properties
            .insert(name.into(), Arc::new(string().describe(text)));
    }
    root.properties
        .insert("metadata".into(), OBJECT_META.clone());
    root
}

/// A schema as CRDs and OpenAPI documents write it, all parts in place.
pub fn inline(schema: &Schema) -> Value {
    write(schema, &mut |part| inline(part))
}

/// A schema as OpenAPI documents write it: named parts become references and are collected.
pub fn refer(schema: &Schema, components: &mut BTreeMap<String, Value>) -> Value {
    let Some(name) = &schema.component else {
        return write(schema, &mut |part| refer(part, components));
    };
    if !components.contains_key(name) {
        components.insert(name.clone(), Value::Null);
        let body = write(schema, &mut |part| refer(part, components));
        components.insert(name.clone(), body);
    }
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    if schema.description.is_empty() && schema.default.is_none() {
        return reference;
    }
    let mut value = json!({"allOf": [reference], "description": schema.description});
    if let Some(default) = &schema.default {
        value["default"] = default.clone();
    }
    value
}

fn write(schema: &Schema, part: &mut impl FnMut(&Schema) -> Value) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.into(), value);
    };
    if !schema.description.is_empty() {
        put("description", json!(schema.description));
    }
    match schema.of {
        Type::Any => {}
        Type::IntOrString => {
            put("x-kubernetes-int-or-string", json!(true));
            put("anyOf", json!([{"type": "integer"}, {"type": "string"}]));
        }
        Type::Object => put("type", json!("object")),
        Type::Array => put("type", json!("array")),
        Type::String => put("type", json!("string")),
        Type::Integer => put("type", json!("integer")),
        Type::Number => put("type", json!("number")),
        Type::Boolean => put("type", json!("boolean")),
    }
    if !schema.properties.is_empty() {
        let properties: Map<String, Value> = schema
            .properties
            .iter()
            .map(|(name, schema)| (name.clone(), part(schema)))
            .collect();
        put("properties", Value::Object(properties));
    }
    if let Some(values) = &schema.additional {
        put("additionalProperties", part(values));
    }
    if let Some(items) = &schema.items {
        put("items", part(items));
    }
    if !schema.required.is_empty() {
        put("required", json!(schema.required));
    }
    if let Some(default) = &schema.default {
        put("default", default.clone());
    }
    if !schema.one_of.is_empty() {
        put("enum", json!(schema.one_of));
    }
    for (key, value) in [
        ("format", schema.format.as_ref().map(|v| json!(v))),
        ("pattern", schema.pattern.as_ref().map(|v| json!(v))),
        ("minimum", schema.minimum.map(plain_number)),
        ("maximum", schema.maximum.map(plain_number)),
        ("minLength", schema.min_length.map(|v| json!(v))),
        ("maxLength", schema.max_length.map(|v| json!(v))),
        ("minItems", schema.min_items.map(|v| json!(v))),
        ("maxItems", schema.max_items.map(|v| json!(v))),
        ("maxProperties", schema.max_properties.map(|v| json!(v))),
        ("nullable", schema.nullable.then_some(json!(true))),
        (
            "x-kubernetes-preserve-unknown-fields",
            schema.preserve_unknown.then_some(json!(true)),
        ),
        (
            "x-kubernetes-embedded-resource",
            schema.embedded.then_some(json!(true)),
        ),
        (
            "x-kubernetes-map-type",
            schema.atomic.then_some(json!("atomic")),
        ),
    ] {
        if let Some(value) = value {
            put(key, value);
        }
    }
    match &schema.list {
        ListType::Atomic if schema.of == Type::Array => {
            put("x-kubernetes-list-type", json!("atomic"));
        }
        ListType::Atomic => {}
        ListType::Set => put("x-kubernetes-list-type", json!("set")),
        ListType::Map(keys) => {
            put("x-kubernetes-list-type", json!("map"));
            put("x-kubernetes-list-map-keys", json!(keys));
        }
    }
    Value::Object(out)
}

fn plain_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        json!(number as i64)
    } else {
        json!(number)
    }
}

/// The name of a kind's own component: `io.kubewarden.sbomscanner.v1alpha1.Registry`.
pub fn component_name(kind: &Kind, version: &str) -> String {
    if let Some(component) = &kind.schema.component {
        return component.clone();
    }
    if kind.builtin {
        let group = match kind.group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        };
        return format!("io.k8s.api.{group}.{version}.{}", kind.kind);
    }
    let mut parts: Vec<&str> = kind.group.split('.').rev().collect();
    parts.extend([version, kind.kind.as_str()]);
    parts.join(".")
}

/// Adds the component of a kind and of its list; returns the kind's component name.
pub fn add_kind(kind: &Kind, version: &str, components: &mut BTreeMap<String, Value>) -> String {
    let name = component_name(kind, version);
    let gvk = |suffix: &str| json!([{"group": kind.group, "version": version, "kind": format!("{}{suffix}", kind.kind)}]);
    let mut root = root_schema(kind);
    root.component = None;
    if root.description.is_empty() {
        root.description = kind.description.clone();
    }
    let mut body = refer(&root, components);
    body["x-kubernetes-group-version-kind"] = gvk("");
    components.insert(name.clone(), body);
    let mut list_body = refer(
        &object()
            .describe(&format!("A list of {}.", kind.kind))
            .field("apiVersion", string())
            .field("kind", string())
            .field("metadata", list_meta()),
        components,
    );
    list_body["properties"]["items"] = json!({
        "type": "array",
        "items": {"$ref": format!("#/components/schemas/{name}")},
    });
    list_body["required"] = json!(["items"]);
    list_body["x-kubernetes-group-version-kind"] = gvk("List");
    components.insert(format!("{name}List"), list_body);
    name
}

/// The CustomResourceDefinition of a kind, as a real kube-apiserver accepts it.
pub fn custom_resource_definition(kind: &Kind) -> Value {
    let versions: Vec<Value> = kind
        .versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            let mut root = (*kind.schema).clone();
            root.of = Type::Object;
            root.description = kind.description.clone();
            for name in ["apiVersion", "kind"] {
                root.properties.insert(name.into(), Arc::new(string()));
            }
            root.properties
                .insert("metadata".into(), Arc::new(object()));
            let mut entry = json!({
                "name": version, "served": true, "storage": index == 0,
                "schema": {"openAPIV3Schema": inline(&root)},
            });
            if kind.status {
                entry["subresources"] = json!({"status": {}});
            }
            let columns: Vec<Value> = kind.columns.iter().filter_map(printer_column).collect();
            if !columns.is_empty() {
                entry["additionalPrinterColumns"] = json!(columns);
            }
            if !kind.selectable.is_empty() {
                let fields: Vec<Value> = kind
                    .selectable
                    .iter()
                    .map(|path| json!({"jsonPath": format!(".{path}")}))
                    .collect();
                entry["selectableFields"] = json!(fields);
            }
            entry
        })
        .collect();
    let mut names = json!({
        "kind": kind.kind, "listKind": format!("{}List", kind.kind),
        "plural": kind.plural, "singular": kind.singular,
    });
    if !kind.short_names.is_empty() {
        names["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        names["categories"] = json!(kind.categories);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.group_resource()},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
            "versions": versions,
        },
    })
}

fn printer_column(column: &crate::Column) -> Option<Value> {
    let crate::Cell::Path(path) = &column.cell else {
        return None;
    };
    let mut value = json!({"name": column.name, "type": column.of, "jsonPath": path});
    if column.priority > 0 {
        value["priority"] = json!(column.priority);
    }
    for (key, text) in [
        ("description", &column.description),
        ("format", &column.format),
    ] {
        if !text.is_empty() {
            value[key] = json!(text);
        }
    }
    Some(value)
}

/// Reads a schema as OpenAPI writes it. `resolve` finds what a `$ref` names; a reference that is
/// inside itself becomes an object of any shape.
pub fn read(value: &Value, resolve: &mut dyn FnMut(&str) -> Arc<Schema>) -> Schema {
    if let Some(reference) = reference(value) {
        let mut schema = (*resolve(reference)).clone();
        if let Some(default) = value.get("default").filter(|d| **d != json!({})) {
            schema.default = Some(default.clone());
        }
        read_extensions(value, &mut schema);
        return schema;
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let mut schema = match text("type") {
        Some("object") => object(),
        Some("array") => list(any()),
        Some("string") => string(),
        Some("integer") => Schema {
            of: Type::Integer,
            ..Default::default()
        },
        Some("number") => schema::number(),
        Some("boolean") => schema::boolean(),
        _ => any(),
    };
    schema.format = text("format").map(Into::into);
    if schema.format.as_deref() == Some("int-or-string")
        || value.get("x-kubernetes-int-or-string") == Some(&json!(true))
        || value.get("oneOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
    {
        schema = Schema {
            of: Type::IntOrString,
            ..Default::default()
        };
    }
    for (name, property) in value
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        schema
            .properties
            .insert(name.clone(), read_part(property, resolve));
    }
    if let Some(values) = value.get("additionalProperties").filter(|v| v.is_object()) {
        schema.additional = Some(read_part(values, resolve));
    }
    if let Some(items) = value.get("items") {
        schema.items = Some(read_part(items, resolve));
    }
    schema.required = strings(value.get("required"));
    schema.default = value.get("default").filter(|d| **d != json!({})).cloned();
    schema.nullable = value.get("nullable") == Some(&json!(true));
    schema.one_of = value
        .get("enum")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    read_extensions(value, &mut schema);
    schema
}

/// A part of a schema. A reference that says nothing of its own is shared, not copied: `PodSpec`
/// is held once, however many kinds embed it.
fn read_part(value: &Value, resolve: &mut dyn FnMut(&str) -> Arc<Schema>) -> Arc<Schema> {
    match reference(value) {
        Some(name) if value.as_object().is_some_and(|map| map.len() == 1) => resolve(name),
        _ => Arc::new(read(value, resolve)),
    }
}

fn read_extensions(value: &Value, schema: &mut Schema) {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match text("x-kubernetes-list-type") {
        Some("set") => schema.list = ListType::Set,
        Some("map") => {
            schema.list = ListType::Map(strings(value.get("x-kubernetes-list-map-keys")))
        }
        _ => {}
    }
    if text("x-kubernetes-map-type") == Some("atomic") {
        schema.atomic = true;
    }
    if value.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true)) {
        schema.preserve_unknown = true;
    }
    if let Some(strategy) = text("x-kubernetes-patch-strategy") {
        schema.strategic.merge = strategy.split(',').any(|s| s == "merge");
        schema.strategic.retain_keys = strategy.split(',').any(|s| s == "retainKeys");
    }
    schema.strategic.merge_key = text("x-kubernetes-patch-merge-key").map(Into::into);
}

/// What a schema refers to, whether plainly or as `allOf` with one member.
pub fn reference(value: &Value) -> Option<&str> {
    value
        .get("$ref")
        .or_else(|| value.get("allOf")?.as_array()?.first()?.get("$ref"))?
        .as_str()?
        .rsplit('/')
        .next()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(Into::into))
        .collect()
}
