//! The Images that earlier jobs have found. A tag that still has the digest it had is not listed
//! again: its Images are only made the new job's. That needs to be sure of all of them, so each
//! Image says as one of how many it was listed, and for which platforms.

use crate::access::Access;
use crate::object::{IMAGE, LISTED};
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_registry::{Digest, Repository};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// An Image as it is kept.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Known {
    metadata: ObjectMeta,
    pub(crate) image_metadata: Box<RawValue>,
    pub(crate) layers: Option<Box<RawValue>>,
    #[serde(skip)]
    about: About,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct About {
    tag: String,
    digest: String,
    index_digest: String,
    config_digest: String,
}

/// What an Image says that it is one of.
pub(crate) fn listed_as(count: usize, access: &Access) -> String {
    format!("{count} of {}", access.spec.platforms())
}

/// The Images of a repository that are known already.
pub(crate) struct Images(Vec<Known>);

impl Images {
    /// Reads them.
    pub(crate) async fn read(
        operator: &Operator,
        namespace: &str,
        registry: &str,
        repository: &Repository,
    ) -> Result<Images, Trouble> {
        let name = repository.name();
        let selector = format!("imageMetadata.registry={registry},imageMetadata.repository={name}");
        let client = operator.client();
        let found: Vec<Known> = IMAGE.list(client, namespace, &selector).await?;
        Ok(Images(found.into_iter().map(Known::understood).collect()))
    }

    /// The names of all of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|image| image.name().to_owned())
    }

    /// The tags of all of them.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.0.iter().map(|image| image.about.tag.as_str());
        tags.filter(|tag| !tag.is_empty())
    }

    /// Whether anything is known of a tag, or of a digest that has none.
    pub(crate) fn has(&self, tag: Option<&str>, digest: Option<&Digest>) -> bool {
        self.of(tag)
            .any(|image| digest.is_none_or(|digest| image.is(digest)))
    }

    /// The digests that the Images of a tag are known by, if they are what it means.
    pub(crate) fn digests(&self, tag: &str, means: Option<&Digest>) -> BTreeSet<&str> {
        self.of(Some(tag))
            .filter(|image| means.is_none_or(|digest| image.is(digest)))
            .flat_map(Known::digests)
            .collect()
    }

    /// All Images behind a tag that has this digest, if it is sure that they are all and that they
    /// say all: older ones do not know the digest of their configuration.
    pub(crate) fn all(
        &self,
        access: &Access,
        tag: Option<&str>,
        digest: &Digest,
    ) -> Option<Vec<&Known>> {
        let images: Vec<&Known> = self.of(tag).filter(|image| image.is(digest)).collect();
        let expected = listed_as(images.len(), access);
        let is_whole = |image: &&Known| {
            image.listed() == Some(&expected) && !image.about.config_digest.is_empty()
        };
        (!images.is_empty() && images.iter().all(is_whole)).then_some(images)
    }

    fn of(&self, tag: Option<&str>) -> impl Iterator<Item = &Known> {
        let tag = tag.unwrap_or_default().to_owned();
        self.0.iter().filter(move |image| image.about.tag == tag)
    }
}

impl Known {
    fn understood(mut self) -> Known {
        self.about = serde_json::from_str(self.image_metadata.get()).unwrap_or_default();
        self
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Everything that it is known by beside its tag.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &str> {
        let about = &self.about;
        let digests = [&about.index_digest, &about.digest, &about.config_digest];
        let digests = digests.into_iter().map(String::as_str);
        digests.filter(|digest| !digest.is_empty())
    }

    /// Whether this is what a reference to the digest means: the index where there is one.
    fn is(&self, digest: &Digest) -> bool {
        self.digests().next() == Some(digest.as_str())
    }

    fn listed(&self) -> Option<&String> {
        self.metadata.annotations.as_ref()?.get(LISTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn digest(letter: &str) -> Digest {
        Digest::parse(&format!("sha256:{}", letter.repeat(64))).unwrap()
    }

    fn image(about: Value, listed: &str) -> Known {
        let known = json!({
            "metadata": {"name": "x", "annotations": {LISTED: listed}}, "imageMetadata": about,
        });
        let known: Known = serde_json::from_str(&known.to_string()).unwrap();
        known.understood()
    }

    #[test]
    fn a_tag_is_known_only_if_all_its_images_are() {
        let (a, b) = (digest("a").to_string(), digest("b").to_string());
        let (c, d) = (digest("c").to_string(), digest("d").to_string());
        let e = digest("e").to_string();
        let [one, two] = ["1 of any platform", "2 of any platform"].map(str::to_owned);
        let images = Images(vec![
            image(json!({"tag": "1", "digest": a, "configDigest": e}), &one),
            image(
                json!({"tag": "2", "digest": a, "indexDigest": b, "configDigest": e}),
                &two,
            ),
            image(
                json!({"tag": "2", "digest": c, "indexDigest": b, "configDigest": e}),
                &two,
            ),
            image(
                json!({"tag": "3", "digest": a, "indexDigest": b, "configDigest": e}),
                &two,
            ),
            image(
                json!({"tag": "4", "digest": a, "configDigest": e}),
                "1 of linux/amd64",
            ),
            image(json!({"digest": d, "configDigest": e}), &one),
            image(json!({"tag": "6", "digest": a}), &one),
        ]);
        let access = Access::unasked(json!({"uri": "a"}));
        for (tag, letter, count) in [
            (Some("1"), "a", Some(1)),
            (Some("1"), "b", None),
            (Some("2"), "b", Some(2)),
            // The index is what the tag points to, and not an image of it.
            (Some("2"), "a", None),
            (Some("3"), "b", None),
            (Some("4"), "a", None),
            (Some("5"), "a", None),
            // An older writer left out by which digest some runtimes know it.
            (Some("6"), "a", None),
            (None, "d", Some(1)),
            (None, "a", None),
        ] {
            let found = images.all(&access, tag, &digest(letter));
            assert_eq!(found.map(|f| f.len()), count, "{tag:?} {letter}");
        }
        let known = images.digests("2", Some(&digest("b")));
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [&a, &b, &c, &e]);
        assert!(images.digests("2", Some(&digest("a"))).is_empty());
        assert!(images.has(Some("3"), None) && !images.has(Some("5"), None));
        assert!(images.has(None, Some(&digest("d"))) && !images.has(None, Some(&digest("a"))));
    }
}
