//! VEX documents that are attached to an image in its registry. Whoever may push to the repository
//! may attach them, so they are asked for only by those who say so; what cannot be read is told and
//! the rest is used.

use crate::error::Error;
use muster_registry::{Client, Descriptor, Digest, ImageManifest, Manifest, Reference, Repository};
use muster_scan::vex::Document;

/// How many attached manifests are looked at, and how many documents of each.
const MOST_MANIFESTS: usize = 64;
const MOST_DOCUMENTS: usize = 64;
/// How large a document may be.
const LARGEST: usize = 16 << 20;

/// What was attached to an image.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// The documents, with the digests they are known by.
    pub documents: Vec<(String, Document)>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// Fetches the documents attached to an image, by the digest of its manifest, or to the index that it
/// was found through by `reference`.
pub async fn attached(
    client: &Client,
    reference: &Reference,
    image: &str,
) -> Result<Attached, Error> {
    let repository = reference.repository();
    let mut manifests = Vec::new();
    let fetched = client.manifest(reference).await?;
    let mut subjects = vec![fetched.digest];
    if let Some(image) = Digest::parse(image) {
        if let Manifest::Index(index) = &fetched.manifest {
            manifests.extend(index.attached(&image).cloned());
        }
        if !subjects.contains(&image) {
            subjects.push(image);
        }
    }
    for subject in &subjects {
        manifests.extend(client.referrers(repository, subject).await?);
    }
    let mut found = Attached::default();
    if manifests.len() > MOST_MANIFESTS {
        let rest = manifests.len() - MOST_MANIFESTS;
        let problem = format!("{rest} of what is attached to {reference} is not looked at");
        found.problems.push(problem);
    }
    for entry in manifests.iter().take(MOST_MANIFESTS) {
        match client.manifest(&repository.at(&entry.digest)).await {
            Ok(fetched) => {
                if let Manifest::Image(manifest) = fetched.manifest {
                    found.read(client, repository, &manifest).await;
                }
            }
            Err(error) => found.problems.push(error.to_string()),
        }
    }
    Ok(found)
}

impl Attached {
    async fn read(&mut self, client: &Client, repository: &Repository, manifest: &ImageManifest) {
        let layers = manifest.layers.iter().filter(|layer| may_be(layer));
        for layer in layers.take(MOST_DOCUMENTS) {
            let name = format!("{repository}@{}", layer.digest);
            let bytes = match client.small_blob(repository, layer, LARGEST).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.problems.push(error.to_string());
                    continue;
                }
            };
            match Document::attached(&bytes) {
                Ok(Some(document)) => self.documents.push((name, document)),
                Ok(None) => {}
                Err(error) => self.problems.push(format!("{name}: {error}")),
            }
        }
    }
}

/// Whether something may be a VEX document, by its type and by what cosign notes of it.
fn may_be(layer: &Descriptor) -> bool {
    let kind = layer.media_type.as_str();
    let predicate = ["predicateType", "in-toto.io/predicate-type"]
        .iter()
        .find_map(|key| layer.annotations.get(*key));
    let is_other = predicate.is_some_and(|predicate| {
        let predicate = predicate.to_lowercase();
        !["vex", "cyclonedx", "csaf"]
            .iter()
            .any(|word| predicate.contains(word))
    });
    let wraps = ["dsse", "in-toto", "vex", "csaf"]
        .iter()
        .any(|word| kind.contains(word));
    wraps && !is_other
}
