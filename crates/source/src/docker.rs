//! The list of images that `docker save` writes beside their layers: for each its configuration, its
//! names and its layers, by the names of their files in the same archive.

use crate::archive::inside;
use crate::content::{Content, Place};
use crate::error::Error;
use crate::image::Image;
use crate::oci::Wanted;
use crate::options::Options;
use muster_registry::{Digest, ImageConfig};
use serde::Deserialize;

/// The file.
pub(crate) const LIST: &str = "manifest.json";

/// The largest configuration.
const CONFIG: u64 = 8 << 20;
const MOST_IMAGES: usize = 1000;
const MOST_LAYERS: usize = 4096;
const MOST_NAMES: usize = 1000;

/// An image of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    /// The file of its configuration.
    pub(crate) config: String,
    /// What it is called.
    pub(crate) names: Vec<String>,
    /// The files of its layers, the lowest first.
    pub(crate) layers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Option<Vec<String>>,
}

/// Reads the list; the reason where it makes no sense.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Saved>, String> {
    let raw: Vec<Raw> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if raw.len() > MOST_IMAGES {
        return Err(format!("more than {MOST_IMAGES} images"));
    }
    raw.into_iter().map(saved).collect()
}

fn saved(raw: Raw) -> Result<Saved, String> {
    let names = raw.repo_tags.unwrap_or_default();
    let layers = raw.layers.unwrap_or_default();
    if names.len() > MOST_NAMES || layers.len() > MOST_LAYERS {
        let most = format!("more than {MOST_NAMES} names or {MOST_LAYERS} layers");
        return Err(most);
    }
    let file = |name: String| inside(&name).ok_or_else(|| format!("{name:?} leads out of it"));
    Ok(Saved {
        config: file(raw.config)?,
        names,
        layers: layers.into_iter().map(file).collect::<Result<_, _>>()?,
    })
}

/// The digits that a configuration's file is named by, where it is named by its digest.
pub(crate) fn digits(config: &str) -> Option<&str> {
    let (_, name) = config.rsplit_once('/').unwrap_or(("", config));
    let name = name.strip_suffix(".json").unwrap_or(name);
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (name.len() == 64 && name.bytes().all(is_digit)).then_some(name)
}

/// The image of an archive as `docker save` writes it.
pub(crate) async fn images(
    content: &Content,
    place: &str,
    list: &[u8],
    selector: Option<&str>,
    options: &Options,
) -> Result<Vec<Wanted>, Error> {
    let attempt = format!("reading {LIST} of {place}");
    let mut images = read(list).map_err(|reason| Error::malformed(&attempt, reason))?;
    let label = |image: &Saved| image.names.first().unwrap_or(&image.config).clone();
    let names: Vec<String> = images.iter().map(label).collect();
    if let Some(wanted) = selector {
        images.retain(|image| {
            let is_meant = |name: &String| name == wanted;
            image.names.iter().any(is_meant)
                || digits(&image.config)
                    .is_some_and(|name| wanted.strip_prefix("sha256:").unwrap_or(wanted) == name)
        });
    }
    let image = match (images.pop(), images.is_empty(), selector) {
        (Some(image), true, _) => image,
        (Some(_), false, _) => return Err(Error::ambiguous(place, &names)),
        (None, _, Some(wanted)) => {
            return Err(Error::NoSuchImage {
                place: place.into(),
                wanted: wanted.into(),
                names,
            });
        }
        (None, _, None) => return Err(Error::malformed(attempt, "there is no image in it")),
    };
    let name = image.names.first().map_or(place, String::as_str);
    let attempt = format!("reading the configuration of {name} in {place}");
    let config = content.document(&image.config, CONFIG).await?;
    let config = config.ok_or_else(|| Error::malformed(&attempt, "it is not there"))?;
    // There is no manifest, so the configuration's digest says which image it is, as it does in
    // Docker itself.
    let digest = Digest::of(&config);
    if let Some(expected) = digits(&image.config)
        && digest.as_str() != format!("sha256:{expected}")
    {
        return Err(Error::malformed(attempt, format!("its digest is {digest}")));
    }
    let config = ImageConfig::read(&attempt, config)?;
    let have = [config.platform.clone()];
    if let Err(wanted) = options.platforms.choose(&have) {
        return Err(Error::NoPlatform {
            image: name.into(),
            wanted,
            available: have.into_iter().flatten().collect(),
        });
    }
    let places = image.layers.into_iter().map(Place::File).collect();
    Ok(vec![Image::new(name, &digest, config, places)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_its_names_stay_inside() {
        let list = br#"[{"Config":"./abc.json","RepoTags":null,"Layers":["a/layer.tar"]}]"#;
        let saved = Saved {
            config: "abc.json".into(),
            names: vec![],
            layers: vec!["a/layer.tar".into()],
        };
        assert_eq!(read(list), Ok(vec![saved]));
        for wrong in [
            &b"{}"[..],
            b"",
            br#"[{"Config":"../x"}]"#,
            br#"[{"Config":"x","Layers":["../../etc/passwd"]}]"#,
            br#"[{"Config":""}]"#,
            br#"[{"RepoTags":["a"]}]"#,
        ] {
            assert!(read(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        let many = format!("[{}]", vec![r#"{"Config":"x"}"#; MOST_IMAGES + 1].join(","));
        assert!(read(many.as_bytes()).is_err());
    }

    #[test]
    fn a_configuration_is_often_named_by_its_digest() {
        let hash = "0".repeat(64);
        let digits_of = |name: String| digits(&name).map(str::to_owned);
        assert_eq!(digits_of(format!("{hash}.json")), Some(hash.clone()));
        assert_eq!(
            digits_of(format!("blobs/sha256/{hash}")),
            Some(hash.clone())
        );
        assert_eq!(digits_of("config.json".into()), None);
    }
}
