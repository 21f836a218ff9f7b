//! Images that somebody's own Registry in the same namespace has found already: they are shown at
//! once, and not scanned a second time.

use super::seen::{Running, Seen};
use crate::access::ANY_PLATFORM;
use crate::object::{IMAGE, LISTED, REPORT};
use kube::Client;
use kube::api::{ListParams, ObjectMeta};
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Found {
    registry: String,
    tag: String,
    digest: String,
    index_digest: String,
    config_digest: String,
    /// For which platforms it was listed.
    #[serde(skip)]
    listed: String,
    /// Whether it is known what is wrong with it. A discovery makes Images that nobody scans.
    #[serde(skip)]
    scanned: bool,
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
            let others: Vec<Image> = images.into_iter().filter(|one| !is_ours(one)).collect();
            if others.is_empty() {
                continue;
            }
            let reports = ListParams::default().fields(&selector);
            let reports = REPORT.metadata(client, namespace, reports).await?;
            let reports: BTreeSet<String> =
                reports.into_iter().filter_map(|one| one.name).collect();
            let others = others.into_iter().map(|image| Found {
                scanned: image
                    .metadata
                    .name
                    .is_some_and(|name| reports.contains(&name)),
                listed: platforms(image.metadata.annotations.as_ref()),
                ..image.image_metadata
            });
            found.insert((host.to_owned(), repository.to_owned()), others.collect());
        }
        Ok(Elsewhere(found))
    }

    /// The Registry that has all of an image, scanned for at least these platforms; the first by
    /// name, so that it stays the same one.
    pub(crate) fn registry(&self, image: &Seen, platforms: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let key = (image.host.as_str().to_owned(), image.repository.clone());
        let mut registries: BTreeMap<&str, bool> = BTreeMap::new();
        for found in self.0.get(&key)?.iter().filter(|found| found.is(image)) {
            let covers = found.listed == ANY_PLATFORM || found.listed == platforms;
            let is_fit = registries.entry(&found.registry).or_insert(true);
            *is_fit &= found.scanned && covers;
        }
        let mut fit = registries.into_iter().filter(|(_, is_fit)| *is_fit);
        fit.next().map(|(registry, _)| registry.to_owned())
    }
}

/// For which platforms an Image says that it was listed: `2 of any platform`.
fn platforms(annotations: Option<&BTreeMap<String, String>>) -> String {
    let listed = annotations.and_then(|annotations| annotations.get(LISTED));
    let platforms = listed.and_then(|text| text.split_once(" of "));
    platforms.map_or(String::new(), |(_, platforms)| platforms.to_owned())
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
            listed: "any platform".into(),
            scanned: true,
        };
        let known = vec![found("first", "b"), found("second", "d")];
        let key = ("quay.io".to_owned(), "team/app".to_owned());
        let elsewhere = Elsewhere(BTreeMap::from([(key.clone(), known)]));
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
                elsewhere.registry(&seen, "linux/amd64").as_deref(),
                registry,
                "{image} {id}"
            );
        }
    }

    #[test]
    fn what_is_not_all_scanned_is_not_taken() {
        let found = |registry: &str, scanned: bool, listed: &str| Found {
            registry: registry.into(),
            tag: "1".into(),
            scanned,
            listed: listed.into(),
            ..Found::default()
        };
        let key = ("quay.io".to_owned(), "team/app".to_owned());
        let seen = Seen::read("quay.io/team/app:1", "").unwrap();
        for (known, registry) in [
            (vec![found("a", true, "any platform")], Some("a")),
            (vec![found("a", true, "linux/arm64")], Some("a")),
            (vec![found("a", true, "linux/amd64")], None),
            (vec![found("a", true, "")], None),
            // Only discovered, or not all of its platforms yet.
            (vec![found("a", false, "any platform")], None),
            (
                vec![
                    found("a", true, "any platform"),
                    found("a", false, "any platform"),
                    found("b", true, "any platform"),
                ],
                Some("b"),
            ),
        ] {
            let elsewhere = Elsewhere(BTreeMap::from([(key.clone(), known)]));
            let taken = elsewhere.registry(&seen, "linux/arm64");
            assert_eq!(taken.as_deref(), registry, "{elsewhere:?}");
        }
    }
}
