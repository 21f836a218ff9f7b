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

/// An Image as it is kept.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Known {
    metadata: ObjectMeta,
    pub(crate) image_metadata: Box<RawValue>,
    pub(crate) layers: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct About {
    tag: String,
    digest: String,
    index_digest: String,
}

/// What an Image says that it is one of.
pub(crate) fn listed_as(count: usize, access: &Access) -> String {
    format!("{count} of {}", access.spec.platforms())
}

/// The Images of a repository that are known already.
pub(crate) struct Images(Vec<(About, Known)>);

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
        let about = |image: Known| {
            let about = serde_json::from_str(image.image_metadata.get());
            (about.unwrap_or_default(), image)
        };
        Ok(Images(found.into_iter().map(about).collect()))
    }

    /// The names of all of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(_, image)| image.name().to_owned())
    }

    /// Whether anything is known of a tag, or of a digest that has none.
    pub(crate) fn has(&self, tag: Option<&str>, digest: Option<&Digest>) -> bool {
        self.of(tag)
            .any(|(about, _)| digest.is_none_or(|digest| about.is(digest)))
    }

    /// All Images behind a tag that has this digest, if it is sure that they are all.
    pub(crate) fn all(
        &self,
        access: &Access,
        tag: Option<&str>,
        digest: &Digest,
    ) -> Option<Vec<&Known>> {
        let images: Vec<&Known> = self
            .of(tag)
            .filter(|(about, _)| about.is(digest))
            .map(|(_, image)| image)
            .collect();
        let expected = listed_as(images.len(), access);
        let mut says = images.iter().map(|image| image.listed());
        (!images.is_empty() && says.all(|says| says == Some(&expected))).then_some(images)
    }

    fn of(&self, tag: Option<&str>) -> impl Iterator<Item = &(About, Known)> {
        let tag = tag.unwrap_or_default().to_owned();
        self.0.iter().filter(move |(about, _)| about.tag == tag)
    }
}

impl About {
    /// Whether this is what a reference to the digest means: the index where there is one.
    fn is(&self, digest: &Digest) -> bool {
        match self.index_digest.as_str() {
            "" => self.digest == digest.as_str(),
            index => index == digest.as_str(),
        }
    }
}

impl Known {
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
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

    fn image(about: Value, listed: &str) -> (About, Known) {
        let known = json!({
            "metadata": {"name": "x", "annotations": {LISTED: listed}}, "imageMetadata": about,
        });
        let about = serde_json::from_value(about).unwrap();
        (about, serde_json::from_str(&known.to_string()).unwrap())
    }

    #[test]
    fn a_tag_is_known_only_if_all_its_images_are() {
        let (a, b) = (digest("a").to_string(), digest("b").to_string());
        let (c, d) = (digest("c").to_string(), digest("d").to_string());
        let any = "any platform";
        let images = Images(vec![
            image(json!({"tag": "1", "digest": a}), &format!("1 of {any}")),
            image(
                json!({"tag": "2", "digest": a, "indexDigest": b}),
                &format!("2 of {any}"),
            ),
            image(
                json!({"tag": "2", "digest": c, "indexDigest": b}),
                &format!("2 of {any}"),
            ),
            image(
                json!({"tag": "3", "digest": a, "indexDigest": b}),
                &format!("2 of {any}"),
            ),
            image(json!({"tag": "4", "digest": a}), "1 of linux/amd64"),
            image(json!({"digest": d}), &format!("1 of {any}")),
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
            (None, "d", Some(1)),
            (None, "a", None),
        ] {
            let found = images.all(&access, tag, &digest(letter));
            assert_eq!(found.map(|f| f.len()), count, "{tag:?} {letter}");
        }
        assert!(images.has(Some("3"), None) && !images.has(Some("5"), None));
        assert!(images.has(None, Some(&digest("d"))) && !images.has(None, Some(&digest("a"))));
    }
}
