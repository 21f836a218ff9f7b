//! An Image as far as its users are concerned: what it answers to and whom it names. Layers and
//! bookkeeping are skipped while it is read and never kept.

use super::index::Name;
use crate::object::IMAGE;
use kube::api::{ApiResource, ObjectMeta};
use kube::core::DynamicResourceScope;
use muster_api::link;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::borrow::Cow;

/// An Image, without what makes it large.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Narrow {
    #[serde(deserialize_with = "named")]
    metadata: ObjectMeta,
    #[serde(default)]
    image_metadata: Value,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    workload_scan_reports: Option<Vec<Told>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    namespace: String,
    name: String,
}

/// Of an object's metadata, what it is found by.
fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        namespace: Option<String>,
        name: Option<String>,
        resource_version: Option<String>,
    }
    let read = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        namespace: read.namespace,
        name: read.name,
        resource_version: read.resource_version,
        ..ObjectMeta::default()
    })
}

impl Narrow {
    pub(super) fn name(&self) -> Name {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        Name::new(&part(&self.metadata.namespace), &part(&self.metadata.name))
    }

    /// What it answers to.
    pub(super) fn links(&self) -> Vec<String> {
        link::answered(&json!({
            "metadata": {"namespace": self.metadata.namespace},
            "imageMetadata": self.image_metadata,
        }))
    }

    /// The reports that it names, in the order in which it does.
    pub(super) fn told(&self) -> Vec<Name> {
        let told = self.status.iter();
        let told = told.flat_map(|status| status.workload_scan_reports.iter().flatten());
        told.map(|told| Name::new(&told.namespace, &told.name))
            .collect()
    }
}

impl kube::Resource for Narrow {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(_: &ApiResource) -> Cow<'_, str> {
        IMAGE.kind.into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_without_its_layers_and_its_bookkeeping() {
        let image = json!({
            "metadata": {
                "namespace": "art", "name": "x", "resourceVersion": "7",
                "managedFields": [{"manager": "m"}], "labels": {"a": "b"},
            },
            "imageMetadata": {"registry": "r", "repository": "p", "tag": "1", "digest": "sha256:d"},
            "layers": [{"digest": "sha256:l"}],
            "status": {"workloadScanReports": [{"name": "deployment-a", "namespace": "n"}]},
        });
        let image: Narrow = serde_json::from_value(image).unwrap();
        assert_eq!(image.name(), Name::new("art", "x"));
        assert_eq!(image.links(), ["art/r/p:1", "art/r/p@sha256:d"]);
        assert_eq!(image.told(), [Name::new("n", "deployment-a")]);
        assert_eq!(image.metadata.managed_fields, None);
        assert_eq!(image.metadata.resource_version.as_deref(), Some("7"));

        for bare in [
            json!({"metadata": {}}),
            json!({"metadata": {}, "status": null}),
            json!({"metadata": {}, "status": {"workloadScanReports": null}}),
        ] {
            let bare: Narrow = serde_json::from_value(bare).unwrap();
            assert!(bare.told().is_empty() && bare.links().is_empty());
        }
    }
}
