//! An OCI layout: the list of its images, and which of them are meant.

use crate::content::Content;
use crate::error::Error;
use crate::oci::{self, Wanted};
use crate::options::Options;
use muster_registry::{Descriptor, Index, Manifest};

/// The list of images.
pub(crate) const LIST: &str = "index.json";
/// What names an image in a layout; the first is the whole name, the second often only the tag.
const NAMES: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];

/// The images of a layout: those of one name are an image of several platforms.
pub(crate) async fn images(
    content: &Content,
    place: &str,
    list: &[u8],
    selector: Option<&str>,
    options: &Options,
) -> Result<Vec<Wanted>, Error> {
    let attempt = format!("reading {LIST} of {place}");
    let Manifest::Index(index) = Manifest::read(&attempt, None, list)? else {
        return Err(Error::malformed(attempt, "it is a manifest and no index"));
    };
    let entries = chosen(place, &index, selector)?;
    let name = entries.iter().find_map(name_of).unwrap_or(place).to_owned();
    if let [entry] = &entries[..]
        && let Manifest::Image(manifest) = content.manifest(entry).await?
    {
        return oci::single(content, &name, entry.digest.clone(), manifest, options).await;
    }
    let index = Index { entries, ..index };
    oci::several(content, &name, &index, options).await
}

/// The name of an entry of a layout. A bare tag is no name to anybody else.
fn name_of(entry: &Descriptor) -> Option<&str> {
    let mut names = NAMES.iter().filter_map(|key| entry.annotations.get(*key));
    names
        .find(|name| name.contains(['/', ':']))
        .map(String::as_str)
}

/// The entries of a layout that are meant.
fn chosen(place: &str, index: &Index, selector: Option<&str>) -> Result<Vec<Descriptor>, Error> {
    let labels = |entry: &Descriptor| -> Vec<String> {
        let mut labels: Vec<String> = NAMES
            .iter()
            .filter_map(|key| entry.annotations.get(*key).cloned())
            .collect();
        if labels.is_empty() {
            labels.push(entry.digest.to_string());
        }
        labels
    };
    let label = |entry: &Descriptor| labels(entry).swap_remove(0);
    let entries: Vec<Descriptor> = index.images().cloned().collect();
    if let Some(wanted) = selector {
        // A tag and its digest may both be asked for; then the digest says it.
        let digest = wanted.rsplit_once('@').map_or(wanted, |(_, digest)| digest);
        let is_meant = |entry: &&Descriptor| {
            entry.digest.as_str() == digest
                || labels(entry).iter().any(|label| {
                    label == wanted || label.rsplit_once(':').is_some_and(|(_, tag)| tag == wanted)
                })
        };
        // Under one digest there may be several names, of which the list of images has the first.
        let meant: Vec<Descriptor> = index
            .entries
            .iter()
            .filter(|entry| entry.is_manifest() && !entry.is_attestation())
            .filter(is_meant)
            .cloned()
            .collect();
        return match meant.is_empty() {
            false => Ok(meant),
            true => Err(Error::NoSuchImage {
                place: place.into(),
                wanted: wanted.into(),
                names: entries.iter().map(label).collect(),
            }),
        };
    }
    let named = |entry: &&Descriptor| NAMES.iter().any(|key| entry.annotations.contains_key(*key));
    let mut names: Vec<String> = entries.iter().filter(named).map(label).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() > 1 {
        true => Err(Error::ambiguous(place, &names)),
        false => Ok(entries),
    }
}
