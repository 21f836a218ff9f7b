//! Code in an OCI registry. A policy is an artifact: a manifest with the code as a layer. Which layer
//! is decided by media type: the one that is Wasm (as Kubewarden's tools push it); or, where none is, the
//! only one there is, if it is no archive (Rego and CEL have no media type that everybody uses, and what
//! it is shows in the text). A container image is no policy, nor is an index.

use super::cache::Cache;
use crate::prepare::PrepareError;
use muster_policy::load::LoadError;
use muster_registry::{Client, Descriptor, Digest, Error, Manifest, Reference};

/// The media types of Wasm: the one that Kubewarden's tools push, and the registered one.
const WASM: [&str; 2] = [
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/wasm",
];
/// What in a media type says that it is an archive.
const ARCHIVES: [&str; 5] = ["tar", "gzip", "zstd", "zip", "bzip2"];
/// The largest manifest that is read from the cache; more than the client reads.
const LARGEST_MANIFEST: usize = 4 << 20;

/// Fetches the code behind a reference: its digest, and its bytes unless `wanted` says that nobody
/// needs them.
pub(super) async fn fetch(
    client: &Client,
    cache: Option<&Cache>,
    reference: &Reference,
    largest: usize,
    wanted: impl Fn(&Digest) -> bool,
) -> Result<(Digest, Option<Vec<u8>>), PrepareError> {
    let manifest = manifest(client, cache, reference).await?;
    let layer = code(&manifest).map_err(|why| refused(format!("{reference}: {why}")))?;
    let digest = layer.digest.clone();
    if !wanted(&digest) {
        return Ok((digest, None));
    }
    if let Some(cache) = cache
        && let Some(bytes) = cache.get(&digest, largest).await
    {
        return Ok((digest, Some(bytes)));
    }
    let bytes = client
        .small_blob(reference.repository(), layer, largest)
        .await
        .map_err(trouble)?;
    if let Some(cache) = cache {
        cache.put(&digest, &bytes).await;
    }
    Ok((digest, Some(bytes.to_vec())))
}

async fn manifest(
    client: &Client,
    cache: Option<&Cache>,
    reference: &Reference,
) -> Result<Manifest, PrepareError> {
    if let (Some(digest), Some(cache)) = (reference.digest(), cache)
        && let Some(bytes) = cache.get(digest, LARGEST_MANIFEST).await
        && let Ok(manifest) = Manifest::read("reading what was kept", None, &bytes)
    {
        return Ok(manifest);
    }
    let fetched = client.manifest(reference).await.map_err(trouble)?;
    if let (Some(digest), Some(cache)) = (reference.digest(), cache) {
        cache.put(digest, &fetched.bytes).await;
    }
    Ok(fetched.manifest)
}

/// The layer that is the code.
fn code(manifest: &Manifest) -> Result<&Descriptor, String> {
    let image = match manifest {
        Manifest::Image(image) => image,
        Manifest::Index(_) => return Err("it is an index, and a policy is one artifact".into()),
    };
    let mut wasm = image.layers.iter().filter(|layer| {
        let kind = layer.media_type.split(';').next().unwrap_or_default();
        WASM.contains(&kind.trim())
    });
    match (wasm.next(), wasm.next(), image.layers.as_slice()) {
        (Some(layer), None, _) => Ok(layer),
        (Some(_), Some(_), _) => Err("it has several Wasm modules, and a policy is one".into()),
        (None, _, [only]) if !is_archive(&only.media_type) => Ok(only),
        (None, _, [only]) => Err(format!(
            "it is no policy: its layer is of the type {:?}",
            only.media_type
        )),
        (None, _, layers) => Err(format!(
            "it is no policy: none of its {} layers is a Wasm module",
            layers.len()
        )),
    }
}

fn is_archive(media_type: &str) -> bool {
    let mut words = media_type.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| ARCHIVES.contains(&word))
}

/// What a registry's refusal means for a policy. What is missing, or closed to us, may be put right
/// without anybody touching the policy; what is wrong in itself may not.
fn trouble(error: Error) -> PrepareError {
    match error {
        Error::Malformed { .. }
        | Error::Unsupported { .. }
        | Error::TooLarge { .. }
        | Error::DigestMismatch { .. } => refused(error.to_string()),
        error => PrepareError::Later(format!("the module cannot be fetched: {error}")),
    }
}

fn refused(why: String) -> PrepareError {
    LoadError::Module(why).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_code_is_the_wasm_layer_or_the_only_one() {
        let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
        for (layers, expected) in [
            (&[WASM[0]][..], Some(0)),
            (&[WASM[1]], Some(0)),
            (&["application/wasm; v=1"], Some(0)),
            (&["text/plain", WASM[0]], Some(1)),
            (
                &["application/vnd.cncf.openpolicyagent.policy.layer.v1+rego"],
                Some(0),
            ),
            (&["application/yaml"], Some(0)),
            (&[""], Some(0)),
            (&[WASM[0], WASM[1]], None),
            (&[tar], None),
            (&["application/vnd.docker.image.rootfs.diff.tar.gzip"], None),
            (&["text/plain", "text/plain"], None),
            (&[], None),
        ] {
            let pointer = |number: usize, kind: &str| {
                let digest = Digest::of(&[number as u8]).to_string();
                json!({"mediaType": kind, "digest": digest, "size": 1})
            };
            let all: Vec<_> = layers
                .iter()
                .enumerate()
                .map(|(n, l)| pointer(n, l))
                .collect();
            let document = json!({"schemaVersion": 2, "config": pointer(99, "x"), "layers": all});
            let manifest = Manifest::read("x", None, document.to_string().as_bytes()).unwrap();
            let found = code(&manifest).ok().map(|layer| layer.digest.clone());
            let expected = expected.map(|number: u8| Digest::of(&[number]));
            assert_eq!(found, expected, "{layers:?}");
        }
    }
}
