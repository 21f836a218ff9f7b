//! The second stage: what is in an image. Its layers are read as they come, nothing is kept on
//! disk, and the SBOM is written under the image's name. An image's content never changes, so an
//! SBOM that is there is not made again, and neither is the inventory of a layer.

use crate::access::{self, Access};
use crate::message::{Message, SCAN};
use crate::object::{IMAGE, JOB_UID, SBOM, made_for};
use crate::reconcile;
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_registry::{Descriptor, Digest, ImageConfig, ImageManifest, Manifest, Repository};
use muster_scan::digest::Digest as DiffId;
use muster_scan::layer::LayerInventory;
use muster_scan::limits::Limits;
use muster_scan::sbom::{Bill, Subject, spdx};
use muster_scan::{image, layer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::io::SyncIoBridge;

/// What is needed of an Image.
#[derive(Deserialize)]
struct Image {
    metadata: ObjectMeta,
    #[serde(rename = "imageMetadata")]
    about: Value,
}

/// An SBOM as it is written; the bill is never built as a tree.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: String,
    kind: &'static str,
    metadata: Value,
    image_metadata: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    spdx: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Known {
    metadata: ObjectMeta,
    spdx: Option<Box<RawValue>>,
}

/// Generates the SBOM of an image, unless it is there, and has it matched.
pub(crate) async fn generate(operator: &Operator, message: &Message) -> Result<(), Trouble> {
    let (job, client) = (&message.scanjob, operator.client());
    let name = message.image.as_deref().unwrap_or_default();
    if reconcile::live(operator, job).await?.is_none() {
        return Ok(());
    }
    let Some(image) = IMAGE.read::<Image>(client, &job.namespace, name).await? else {
        return Ok(());
    };
    let known: Option<Known> = SBOM.read(client, &job.namespace, name).await?;
    let is_ours = |known: &Known| {
        let labels = known.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(JOB_UID)) == Some(&job.uid)
    };
    if !known
        .as_ref()
        .is_some_and(|known| known.spdx.is_some() && is_ours(known))
    {
        let spdx = match known.and_then(|known| known.spdx) {
            Some(spdx) => spdx,
            None => bill(operator, &job.namespace, &image.about).await?,
        };
        let uid = image.metadata.uid.unwrap_or_default();
        let written = Written {
            api_version: SBOM.api_version(),
            kind: SBOM.kind,
            metadata: made_for(job, name, IMAGE, name, &uid),
            image_metadata: &image.about,
            spdx: Some(spdx),
        };
        SBOM.apply(client, &job.namespace, name, &written).await?;
    }
    operator.send(SCAN, "scanSBOM", message).await
}

/// Reads an image and writes its bill.
async fn bill(
    operator: &Operator,
    namespace: &str,
    about: &Value,
) -> Result<Box<RawValue>, Trouble> {
    let part = |name: &str| about[name].as_str().unwrap_or_default();
    let Some(access) = access::open(operator, namespace, part("registry")).await? else {
        let why = format!("the Registry {} does not exist", part("registry"));
        return Err(Trouble::permanent(why));
    };
    let repository =
        Repository::on(&access.host, part("repository")).map_err(Trouble::permanent)?;
    let digest = Digest::parse(part("digest"))
        .ok_or_else(|| Trouble::permanent("the Image has no digest"))?;
    let fetched = access.client.manifest(&repository.at(&digest)).await?;
    let Manifest::Image(manifest) = fetched.manifest else {
        return Err(Trouble::permanent(format!("{digest} is no image")));
    };
    let config = access.client.config(&repository, &manifest.config).await?;
    let layers = layers(operator, &access, &repository, &manifest, &config).await?;
    let contents = image::merge(layers.iter().map(|(diff_id, found)| (diff_id, found)));
    let subject = Subject {
        name: format!("{repository}:{}", part("tag")),
        digest: digest.to_string(),
        created: config.created,
    };
    let text = spdx::write(&Bill::new(subject, contents)).map_err(Trouble::permanent)?;
    let text = String::from_utf8(text).map_err(Trouble::permanent)?;
    RawValue::from_string(text).map_err(Trouble::permanent)
}

/// What is in the layers, lowest first.
async fn layers(
    operator: &Operator,
    access: &Access,
    repository: &Repository,
    manifest: &ImageManifest,
    config: &ImageConfig,
) -> Result<Vec<(DiffId, LayerInventory)>, Trouble> {
    if manifest.layers.len() != config.diff_ids.len() {
        let why = format!(
            "the manifest of {repository} has {} layers, its configuration {}",
            manifest.layers.len(),
            config.diff_ids.len()
        );
        return Err(Trouble::permanent(why));
    }
    let mut layers = Vec::new();
    for (descriptor, diff_id) in manifest.layers.iter().zip(&config.diff_ids) {
        let diff_id = DiffId::parse(&diff_id.to_string()).ok_or_else(|| {
            Trouble::permanent(format!("the diff ID {diff_id} is not of SHA-256"))
        })?;
        let read = fetch(access, repository, descriptor, &diff_id);
        let found = operator.layers().inventory(&diff_id, read).await?;
        layers.push((diff_id, found));
    }
    Ok(layers)
}

/// Reads a layer from its registry; it must be what manifest and configuration say.
async fn fetch(
    access: &Access,
    repository: &Repository,
    descriptor: &Descriptor,
    diff_id: &DiffId,
) -> Result<LayerInventory, Trouble> {
    let blob = access.client.layer(repository, descriptor)?;
    let bridge = SyncIoBridge::new(Box::pin(blob.into_reader()));
    let read = tokio::task::spawn_blocking(move || layer::read(bridge, &Limits::DEFAULT));
    let read = read.await.map_err(Trouble::permanent)?;
    let layer = read.map_err(|error| trouble(&descriptor.digest, error))?;
    if layer.diff_id != *diff_id {
        let why = format!(
            "layer {} of {repository} is {} once decompressed, and its configuration says {diff_id}",
            descriptor.digest, layer.diff_id
        );
        return Err(Trouble::permanent(why));
    }
    Ok(layer.inventory)
}

/// A layer that is not what it should be stays so; one that did not come may come later.
fn trouble(layer: &Digest, error: layer::LayerError) -> Trouble {
    let why = format!("reading layer {layer}: {error}");
    let registry = match &error {
        layer::LayerError::Read(source) => source
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<muster_registry::Error>()),
        _ => None,
    };
    match registry {
        Some(error) if error.is_transient() => Trouble::Transient(why),
        _ => Trouble::Permanent(why),
    }
}
