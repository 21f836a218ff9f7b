//! What ties a workload's report to the images it is about, and these to their findings: one text
//! per reference, `namespace/registry/repository` with `:tag` or `@digest`. An image answers to its
//! tag and to every digest it is known by. A container asks for one of them: the digest that runs
//! if that is known, since a tag may mean another image by now.

use serde_json::Value;

/// What an Image or a VulnerabilityReport answers to.
pub fn answered(object: &Value) -> Vec<String> {
    let namespace = text(object, "/metadata/namespace");
    let Some(metadata) = object.get("imageMetadata") else {
        return Vec::new();
    };
    let part = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or("");
    let (registry, repository) = (part("registry"), part("repository"));
    let place = Place {
        namespace,
        registry,
        repository,
    };
    let digests = [part("digest"), part("indexDigest"), part("configDigest")];
    let digests = digests.into_iter().filter(|digest| !digest.is_empty());
    let tag = Some(part("tag")).filter(|tag| !tag.is_empty());
    let mut links: Vec<String> = tag.map(|tag| place.tag(tag)).into_iter().collect();
    links.extend(digests.map(|digest| place.digest(digest)));
    links
}

/// What the containers of a WorkloadScanReport ask for.
pub fn asked(report: &Value) -> Vec<String> {
    let containers = report.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten();
    containers.filter_map(of_container).collect()
}

/// What one container of a WorkloadScanReport asks for; nothing if it names no image.
pub fn of_container(container: &Value) -> Option<String> {
    let reference = container.get("imageRef")?;
    let part = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or("");
    let place = Place {
        namespace: part("namespace"),
        registry: part("registry"),
        repository: part("repository"),
    };
    match (part("digest"), part("tag")) {
        ("", "") => None,
        ("", tag) => Some(place.tag(tag)),
        (digest, _) => Some(place.digest(digest)),
    }
}

struct Place<'a> {
    namespace: &'a str,
    registry: &'a str,
    repository: &'a str,
}

impl Place<'_> {
    fn tag(&self, tag: &str) -> String {
        format!("{self}:{tag}")
    }

    fn digest(&self, digest: &str) -> String {
        format!("{self}@{digest}")
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place {
            namespace,
            registry,
            repository,
        } = self;
        write!(f, "{namespace}/{registry}/{repository}")
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_asks_for_what_its_image_answers_to() {
        let image = |metadata: Value| {
            let mut metadata = metadata;
            metadata["registry"] = json!("hub");
            metadata["repository"] = json!("library/nginx");
            json!({"metadata": {"namespace": "art"}, "imageMetadata": metadata})
        };
        let container = |tag: &str, digest: &str| {
            let mut reference =
                json!({"registry": "hub", "namespace": "art", "repository": "library/nginx"});
            reference["tag"] = json!(tag);
            reference["digest"] = json!(digest);
            json!({"name": "c", "imageRef": reference})
        };
        let tagged = image(json!({
            "tag": "1", "digest": "sha256:m", "indexDigest": "sha256:i", "configDigest": "sha256:c",
        }));
        for (image, container, meets) in [
            (&tagged, container("1", ""), true),
            (&tagged, container("2", ""), false),
            (&tagged, container("1", "sha256:m"), true),
            (&tagged, container("gone", "sha256:i"), true),
            (&tagged, container("1", "sha256:c"), true),
            (&tagged, container("1", "sha256:other"), false),
            (
                &image(json!({"digest": "sha256:m"})),
                container("", "sha256:m"),
                true,
            ),
            (
                &image(json!({"digest": "sha256:m"})),
                container("1", ""),
                false,
            ),
        ] {
            let asked = of_container(&container).unwrap();
            assert_eq!(answered(image).contains(&asked), meets, "{asked}");
        }
        assert_eq!(of_container(&container("", "")), None);
        let report = json!({"spec": {"containers": [container("1", ""), container("", "")]}});
        assert_eq!(asked(&report), ["art/hub/library/nginx:1"]);
    }
}
