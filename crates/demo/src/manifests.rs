//! The objects that a person would apply, in the order of their coming: namespaces, what is scanned,
//! policies of both families, and at last what runs. Policies are the project's own examples.

use crate::error::Error;
use serde_json::Value;

/// What stands for the host of the registry.
const HOST: &str = "registry.demo";

const FILES: [(&str, &str); 10] = [
    (
        "namespaces.yaml",
        include_str!("../manifests/namespaces.yaml"),
    ),
    ("scanning.yaml", include_str!("../manifests/scanning.yaml")),
    (
        "privileged-containers.yaml",
        include_str!("../../../examples/policies/privileged-containers.yaml"),
    ),
    (
        "host-namespaces.yaml",
        include_str!("../../../examples/policies/host-namespaces.yaml"),
    ),
    (
        "image-tags.yaml",
        include_str!("../../../examples/policies/image-tags.yaml"),
    ),
    (
        "required-labels.yaml",
        include_str!("../../../examples/policies/required-labels.yaml"),
    ),
    (
        "non-root.yaml",
        include_str!("../../../examples/policies/non-root.yaml"),
    ),
    ("checks.yaml", include_str!("../manifests/checks.yaml")),
    ("shop.yaml", include_str!("../manifests/shop.yaml")),
    ("platform.yaml", include_str!("../manifests/platform.yaml")),
];

/// All objects, with images of the registry at `host`.
pub fn all(host: &str) -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    for (name, text) in FILES {
        let text = text.replace(HOST, host);
        let read = serde_saphyr::from_multiple::<Value>(&text);
        let read = read.map_err(|error| Error::Manifest {
            name,
            problem: error.to_string(),
        })?;
        objects.extend(read);
    }
    Ok(objects)
}
