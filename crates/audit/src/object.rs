//! An object as the API server sent it, whole: a policy is to see every field, known to us or not. Only
//! who manages which field is left out, as it is from every request.

use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use muster_policy::Served;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    metadata: ObjectMeta,
    value: Value,
}

impl Object {
    /// The object with its type, which the items of a list do not name.
    pub(crate) fn into_value(self, resource: &ApiResource) -> Value {
        let mut value = self.value;
        if let Some(object) = value.as_object_mut() {
            object.insert("apiVersion".into(), resource.api_version.as_str().into());
            object.insert("kind".into(), resource.kind.as_str().into());
        }
        value
    }

    /// Its labels.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.metadata.labels.clone().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        // Long, and nobody judges by it.
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let metadata = match value.get("metadata") {
            Some(metadata) => {
                ObjectMeta::deserialize(metadata).map_err(serde::de::Error::custom)?
            }
            None => ObjectMeta::default(),
        };
        Ok(Object { metadata, value })
    }
}

impl kube::Resource for Object {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// A resource in one of its versions, as a client asks for it.
pub(crate) fn resource(served: &Served, version: &str) -> ApiResource {
    let api_version = match served.group.as_str() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    ApiResource {
        group: served.group.clone(),
        version: version.into(),
        api_version,
        kind: served.kind.clone(),
        plural: served.resource.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::ResourceExt;
    use serde_json::json;

    #[test]
    fn every_field_is_kept_and_the_type_is_named() {
        let written = json!({
            "metadata": {"name": "a", "uid": "u", "somethingNew": 1},
            "spec": {"field": [1, null, 2.50]},
        });
        let mut sent = written.clone();
        sent["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        let object: Object = serde_json::from_value(sent).unwrap();
        assert_eq!(object.name_any(), "a");
        let served = Served {
            group: "apps".into(),
            resource: "things".into(),
            kind: "Thing".into(),
            namespaced: true,
            versions: vec!["v2".into(), "v1".into()],
        };
        let mut expected = written;
        expected["apiVersion"] = "apps/v1".into();
        expected["kind"] = "Thing".into();
        assert_eq!(object.into_value(&resource(&served, "v1")), expected);
    }
}
