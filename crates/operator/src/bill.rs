//! The second stage: what is in an image. Its layers are read as they come, nothing is kept on
//! disk, and the SBOM is written under the image's name. An image's content never changes, so an
//! SBOM that is there is made again only by a newer analyzer; neither is the inventory of a layer.

use crate::access;
use crate::message::{JobKind, Message, SCAN};
use crate::object::{
    ANALYZER, IMAGE, READ_BY, SBOM, inherit, is_for, is_owned, made_for, marked, noted, recognize,
};
use crate::progress;
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_registry::{Digest, Repository};
use muster_scan::layer::ANALYZER_VERSION;
use muster_scan::sbom::{Bill, spdx};
use muster_source::{Options, Platforms, Source, bills};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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
    spdx: Box<RawValue>,
}

/// Generates the SBOM of an image, unless it is there, and has it matched.
pub(crate) async fn generate(operator: &Operator, message: &Message) -> Result<(), Trouble> {
    let (job, client) = (&message.job, operator.client());
    let name = message.image.as_deref().unwrap_or_default();
    if progress::live(operator, job).await?.is_none() {
        return Ok(());
    }
    let Some(image) = IMAGE.read::<Image>(client, &job.namespace, name).await? else {
        return Ok(());
    };
    let uid = image.metadata.uid.clone().unwrap_or_default();
    let known = SBOM.within(client, &job.namespace);
    let known = known.get_metadata_opt(name).await?;
    let known = known.map(|known| known.metadata);
    let analyzer = ANALYZER_VERSION.to_string();
    // The digest is in the name, so it is the bill of this very image; a newer analyzer may see
    // more in it.
    let is_good = |known: &ObjectMeta| {
        is_owned(known, &uid) && noted(known, ANALYZER) == Some(analyzer.as_str())
    };
    match known.filter(is_good) {
        Some(known) if is_for(&known, job) => {}
        Some(_) => {
            operator.metrics().image(false);
            let mut marks = marked(job, json!({READ_BY: null}));
            recognize(&mut marks, &image.about);
            SBOM.merge(client, &job.namespace, name, &marks).await?;
        }
        None => {
            let spdx = bill(operator, &job.namespace, &image.about).await?;
            let mut metadata = made_for(job, name, IMAGE, name, &uid);
            inherit(&mut metadata, &image.metadata);
            metadata["annotations"] = json!({READ_BY: job.uid, ANALYZER: analyzer});
            let written = Written {
                api_version: SBOM.api_version(),
                kind: SBOM.kind,
                metadata,
                image_metadata: &image.about,
                spdx,
            };
            SBOM.apply(client, &job.namespace, name, &written).await?;
            operator.metrics().image(true);
        }
    }
    match job.kind {
        JobKind::ScanJob => operator.send(SCAN, "scanSBOM", message).await,
        JobKind::RegistryDiscovery => Ok(()),
    }
}

/// Reads an image and writes its bill.
async fn bill(
    operator: &Operator,
    namespace: &str,
    about: &Value,
) -> Result<Box<RawValue>, Trouble> {
    let part = |name: &str| about[name].as_str().unwrap_or_default();
    tracing::Span::current().record("registry", part("registry"));
    let Some(access) = access::open(operator, namespace, part("registry")).await? else {
        let why = format!("the Registry {} does not exist", part("registry"));
        return Err(Trouble::permanent(why));
    };
    let repository =
        Repository::on(&access.host, part("repository")).map_err(Trouble::permanent)?;
    let digest = Digest::parse(part("digest"))
        .ok_or_else(|| Trouble::permanent("the Image has no digest"))?;
    let options = Options {
        platforms: Platforms::All,
        cache: operator.layers(),
        ..Options::new(access.client)
    };
    let scanned = bills(&Source::Registry(repository.at(&digest)), &options).await?;
    let first = scanned.into_iter().next().transpose()?;
    // An index has images of its own, under their own digests.
    let is_it = |bill: &Bill| bill.subject.digest == digest.as_str();
    let Some(mut bill) = first.map(|image| image.bill).filter(is_it) else {
        return Err(Trouble::permanent(format!("{digest} is no image")));
    };
    bill.subject.name = format!("{repository}:{}", part("tag"));
    let text = spdx::write(&bill).map_err(Trouble::permanent)?;
    let text = String::from_utf8(text).map_err(Trouble::permanent)?;
    RawValue::from_string(text).map_err(Trouble::permanent)
}
