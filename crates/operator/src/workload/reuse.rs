//! Images that somebody's own Registry in the same namespace has found already: they are shown at
//! once, and not scanned a second time.

use super::seen::{Running, Seen};
use crate::object::IMAGE;
use kube::Client;
use kube::api::ObjectMeta;
use muster_api::guard::WORKLOAD_SCAN;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What the Registries of others have found, by host and repository.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere(BTreeMap<(String, String), Vec<Found>>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    metadata: ObjectMeta,
    image_metadata: Found,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Found {
    registry: String,
    tag: String,
    digest: String,
    index_digest: String,
    config_digest: String,
}

impl Elsewhere {
    /// Asks what has been found of the repositories of some images.
    pub(crate) async fn look(
        client: &Client,
        namespace: &str,
        images: impl Iterator<Item = &Seen>,
    ) -> Result<Elsewhere, kube::Error> {
        let repositories: BTreeSet<(&str, &str)> = images
            .map(|image| (image.host.as_str(), image.repository.as_str()))
            .collect();
        let mut found = BTreeMap::new();
        for (host, repository) in repositories {
            let selector =
                format!("imageMetadata.registryURI={host},imageMetadata.repository={repository}");
            let images: Vec<Image> = IMAGE.list(client, namespace, &selector).await?;
            let is_ours = |image: &Image| {
                let labels = image.metadata.labels.as_ref();
                labels.is_some_and(|labels| labels.contains_key(WORKLOAD_SCAN))
            };
            let mut others: Vec<Found> = images
                .into_iter()
                .filter(|image| !is_ours(image))
                .map(|image| image.image_metadata)
                .collect();
            others.sort_by(|one, other| one.registry.cmp(&other.registry));
            if !others.is_empty() {
                found.insert((host.to_owned(), repository.to_owned()), others);
            }
        }
        Ok(Elsewhere(found))
    }

    /// The Registry that has an image; the first by name, so that it stays the same one.
    pub(crate) fn registry(&self, image: &Seen) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let key = (image.host.as_str().to_owned(), image.repository.clone());
        let found = self.0.get(&key)?.iter();
        let mut found = found.filter(|found| found.is(image));
        found.next().map(|found| found.registry.clone())
    }
}

impl Found {
    fn is(&self, image: &Seen) -> bool {
        match &image.running {
            Running::Unknown => image.tag.as_ref().is_some_and(|tag| *tag == self.tag),
            Running::Pinned(digest) | Running::Pulled(digest) => {
                [&self.index_digest, &self.digest].contains(&&digest.to_string())
            }
            Running::Configured(digest) => self.config_digest == digest.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_what_runs_and_else_by_its_tag() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let found = |registry: &str, index: &str| Found {
            registry: registry.into(),
            tag: "1".into(),
            digest: digest("a"),
            index_digest: digest(index),
            config_digest: digest("c"),
        };
        let known = vec![found("first", "b"), found("second", "d")];
        let key = ("quay.io".to_owned(), "team/app".to_owned());
        let elsewhere = Elsewhere(BTreeMap::from([(key, known)]));
        for (image, id, registry) in [
            ("quay.io/team/app:1", String::new(), Some("first")),
            ("quay.io/team/app:2", String::new(), None),
            ("quay.io/team/other:1", String::new(), None),
            (
                "quay.io/team/app:2",
                format!("x@{}", digest("a")),
                Some("first"),
            ),
            (
                "quay.io/team/app:1",
                format!("x@{}", digest("d")),
                Some("second"),
            ),
            // The tag means something else by now.
            ("quay.io/team/app:1", format!("x@{}", digest("e")), None),
            ("quay.io/team/app:1", digest("c"), Some("first")),
            ("quay.io/team/app:1", digest("a"), None),
        ] {
            let seen = Seen::read(image, &id).unwrap();
            assert_eq!(
                elsewhere.registry(&seen).as_deref(),
                registry,
                "{image} {id}"
            );
        }
    }
}
