//! One platform of an image as it was found in a registry, and the Image that it becomes.

use crate::access::Access;
use crate::known::{Known, listed_as};
use crate::message::Job;
use crate::name;
use crate::object::{IMAGE, LISTED, REGISTRY, made_for};
use crate::wanted::Wanted;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_api::Platform;
use muster_registry::{Digest, ImageConfig, ImageManifest, Repository};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One platform of a tag, or of a digest.
pub(crate) struct Found {
    pub(crate) tag: Option<String>,
    pub(crate) digest: Digest,
    pub(crate) index: Option<Digest>,
    pub(crate) platform: Option<Platform>,
    pub(crate) manifest: ImageManifest,
    pub(crate) config: ImageConfig,
}

/// For whom Images are made, and with which labels.
pub(crate) struct Purpose<'a> {
    pub(crate) access: &'a Access,
    pub(crate) job: &'a Job,
    pub(crate) wanted: &'a Wanted,
    /// What the Images were found by: a tag and what it means, or a digest.
    pub(crate) tag: Option<&'a str>,
    pub(crate) means: &'a Digest,
    /// How many Images there are behind it.
    pub(crate) count: usize,
}

/// An Image of which only the metadata is new.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Relabelled<'a> {
    api_version: String,
    kind: &'static str,
    metadata: Value,
    image_metadata: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<&'a RawValue>,
}

impl Purpose<'_> {
    /// The metadata of an Image. What ties it to its job is never overruled by a condition.
    fn metadata<'d>(&self, name: &str, digests: impl Iterator<Item = &'d str>) -> Value {
        let labels = self.wanted.labels(self.tag, self.means.as_str(), digests);
        let registry = &self.access.name;
        let mut metadata = made_for(self.job, name, REGISTRY, registry, &self.access.uid);
        for (key, value) in labels.iter().chain(&self.access.inherited) {
            let labels = metadata["labels"].as_object_mut();
            labels.map(|labels| labels.entry(key).or_insert_with(|| json!(value)));
        }
        metadata["annotations"] = json!({LISTED: listed_as(self.count, self.access)});
        metadata
    }

    /// A known Image, made this job's.
    pub(crate) fn relabelled<'a>(&self, known: &'a Known) -> Relabelled<'a> {
        Relabelled {
            api_version: IMAGE.api_version(),
            kind: IMAGE.kind,
            metadata: self.metadata(known.name(), known.digests()),
            image_metadata: &known.image_metadata,
            layers: known.layers.as_deref(),
        }
    }

    /// A new Image.
    pub(crate) fn object(&self, repository: &Repository, name: &str, found: &Found) -> Value {
        let mut about = json!({
            "registry": self.access.name, "registryURI": repository.host().as_str(),
            "repository": repository.name(), "digest": found.digest.to_string(),
            "configDigest": found.manifest.config.digest.to_string(),
        });
        if let Some(tag) = &found.tag {
            about["tag"] = json!(tag);
        }
        if let Some(index) = &found.index {
            about["indexDigest"] = json!(index.to_string());
        }
        if let Some(platform) = &found.platform {
            about["platform"] = json!({"os": platform.os, "architecture": platform.architecture});
            if let Some(variant) = &platform.variant {
                about["platform"]["variant"] = json!(variant);
            }
        }
        json!({
            "apiVersion": IMAGE.api_version(), "kind": IMAGE.kind,
            "metadata": self.metadata(name, found.digests()),
            "imageMetadata": about,
            "layers": found.layers(),
        })
    }
}

impl Found {
    /// Everything that it is known by beside its tag.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &str> {
        let own = [&self.digest, &self.manifest.config.digest];
        self.index.iter().chain(own).map(Digest::as_str)
    }

    /// The name of the Image.
    pub(crate) fn name(&self, registry: &str, repository: &Repository) -> String {
        let platform = self.platform.as_ref().map(Platform::to_string);
        let selector = match (&self.tag, &self.index) {
            (Some(tag), _) => format!(":{tag}"),
            (None, Some(index)) => format!("@{index}"),
            (None, None) => format!("@{}", self.digest),
        };
        name::image(
            registry,
            &format!("{}{selector}", repository.name()),
            &platform.unwrap_or_default(),
            self.digest.as_str(),
        )
    }

    /// The layers with the build steps that made them; steps that made none are left out.
    fn layers(&self) -> Vec<Value> {
        let mut steps = self.config.history.iter().filter(|step| !step.empty_layer);
        let layers = self.manifest.layers.iter().zip(&self.config.diff_ids);
        layers
            .map(|(layer, diff)| {
                let command = steps.next().map(|step| STANDARD.encode(&step.created_by));
                json!({
                    "digest": layer.digest.to_string(), "diffID": diff.to_string(),
                    "command": command.unwrap_or_default(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::JobKind;
    use crate::object::inherit;
    use crate::wanted::wanted;
    use muster_api::guard::WORKLOAD_SCAN;
    use std::collections::BTreeMap;

    #[test]
    fn an_image_has_the_labels_of_its_registry_its_conditions_and_its_job() {
        let condition = json!({"name": "c", "expression": "tag == '1'", "labels": {
            "team-a": "true", "sbomscanner.kubewarden.io/scanjob-uid": "another",
        }});
        let repositories = json!([{"name": "app", "matchConditions": [condition]}]);
        let mut access =
            Access::unasked(json!({"uri": "registry.example", "repositories": repositories}));
        access.inherited = BTreeMap::from([(WORKLOAD_SCAN.into(), "true".into())]);
        let job = Job {
            kind: JobKind::ScanJob,
            namespace: "default".into(),
            name: "nightly".into(),
            uid: "the-uid".into(),
        };
        let wanted = wanted(&access, &[]).unwrap().remove(0).unwrap();
        let means = Digest::parse(&format!("sha256:{}", "a".repeat(64))).unwrap();
        let purpose = Purpose {
            access: &access,
            job: &job,
            wanted: &wanted,
            tag: Some("1"),
            means: &means,
            count: 2,
        };
        let metadata = purpose.metadata("x", [].into_iter());
        assert_eq!(metadata["ownerReferences"][0]["kind"], "Registry");
        assert_eq!(metadata["annotations"][LISTED], "2 of any platform");
        let labels = &metadata["labels"];
        assert_eq!(labels["team-a"], "true");
        assert_eq!(labels[WORKLOAD_SCAN], "true");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "sbomscanner");
        assert_eq!(labels["sbomscanner.kubewarden.io/scanjob-uid"], "the-uid");

        // What is made of the Image has the first of them too.
        let image = serde_json::from_value(metadata.clone()).unwrap();
        let mut bill = made_for(&job, "x", IMAGE, "x", "uid");
        inherit(&mut bill, &image);
        assert_eq!(bill["labels"][WORKLOAD_SCAN], "true");
        assert!(bill["labels"]["team-a"].is_null());
    }
}
