//! The third stage: what is wrong with an image. Its SBOM is matched with the vulnerability data,
//! and the report written under the image's name. A report that the same data made is kept as it
//! is; one that older data made is made again, whether somebody scans or not.

use crate::knowledge::Known;
use crate::message::{Message, Rematch};
use crate::object::{
    IMAGE, MATCHED_BY, MATCHED_WITH, REPORT, SBOM, inherit, is_for, is_owned, made_for, marked,
    noted, recognize,
};
use crate::reconcile;
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_scan::report::Report;
use muster_scan::sbom::spdx;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What is needed of an Image.
#[derive(Default, Deserialize)]
struct Image {
    #[serde(rename = "imageMetadata")]
    about: Value,
}

/// What is needed of an SBOM.
#[derive(Deserialize)]
struct Sbom {
    #[serde(rename = "imageMetadata")]
    about: Value,
    spdx: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: String,
    kind: &'static str,
    metadata: Value,
    image_metadata: &'a Value,
    report: Report,
}

/// Matches the SBOM of an image for a job, unless that was done with the same data.
pub(crate) async fn scan(operator: &Operator, message: &Message) -> Result<(), Trouble> {
    let (job, client) = (&message.job, operator.client());
    let name = message.image.as_deref().unwrap_or_default();
    if reconcile::live(operator, job).await?.is_none() {
        return Ok(());
    }
    let known = operator.knowledge().now()?;
    let Some((sbom, report)) = both(operator, &job.namespace, name).await? else {
        return Ok(());
    };
    let (uid, key) = (sbom.uid.clone().unwrap_or_default(), known.key());
    match report.filter(|report| is_current(report, &uid, &key)) {
        Some(report) if is_for(&report, job) => Ok(()),
        Some(_) => {
            operator.metrics().report_kept();
            let mut marks = marked(job, json!({MATCHED_BY: null}));
            let image = IMAGE.read::<Image>(client, &job.namespace, name).await?;
            recognize(&mut marks, &image.unwrap_or_default().about);
            Ok(REPORT.merge(client, &job.namespace, name, &marks).await?)
        }
        None => {
            let mut metadata = made_for(job, name, SBOM, name, &uid);
            inherit(&mut metadata, &sbom);
            metadata["annotations"] = json!({MATCHED_BY: job.uid, MATCHED_WITH: key});
            write(operator, &job.namespace, name, known, metadata).await
        }
    }
}

/// Matches the SBOM of an image again because the data is another one. To whom the report belongs
/// stays as it is.
pub(crate) async fn rematch(operator: &Operator, message: &Rematch) -> Result<(), Trouble> {
    let (namespace, name) = (&message.namespace, &message.image);
    let known = operator.knowledge().now()?;
    let Some((sbom, Some(report))) = both(operator, namespace, name).await? else {
        return Ok(());
    };
    let (uid, key) = (sbom.uid.unwrap_or_default(), known.key());
    if !is_owned(&report, &uid) || is_current(&report, &uid, &key) {
        return Ok(());
    }
    let mut annotations = json!({MATCHED_WITH: key});
    if let Some(job) = noted(&report, MATCHED_BY) {
        annotations[MATCHED_BY] = json!(job);
    }
    let metadata = json!({
        "name": name, "namespace": namespace, "labels": report.labels,
        "annotations": annotations, "ownerReferences": report.owner_references,
    });
    write(operator, namespace, name, known, metadata).await
}

/// Whether a report is what the data of that key makes of its SBOM.
pub(crate) fn is_current(report: &ObjectMeta, sbom: &str, key: &str) -> bool {
    is_owned(report, sbom) && noted(report, MATCHED_WITH) == Some(key)
}

/// The metadata of an image's SBOM, if there is one, and of its report.
async fn both(
    operator: &Operator,
    namespace: &str,
    name: &str,
) -> Result<Option<(ObjectMeta, Option<ObjectMeta>)>, Trouble> {
    let client = operator.client();
    let sboms = SBOM.within(client, namespace);
    let Some(sbom) = sboms.get_metadata_opt(name).await? else {
        return Ok(None);
    };
    let reports = REPORT.within(client, namespace);
    let report = reports.get_metadata_opt(name).await?;
    Ok(Some((sbom.metadata, report.map(|report| report.metadata))))
}

/// Makes the report of an image, and writes it with that metadata.
async fn write(
    operator: &Operator,
    namespace: &str,
    name: &str,
    known: Known,
    metadata: Value,
) -> Result<(), Trouble> {
    let client = operator.client();
    let Some(sbom) = SBOM.read::<Sbom>(client, namespace, name).await? else {
        return Ok(());
    };
    let registry = sbom.about["registry"].as_str().unwrap_or_default();
    tracing::Span::current().record("registry", registry);
    let spdx = sbom
        .spdx
        .ok_or_else(|| Trouble::permanent("the SBOM is empty"))?;
    let work = move || {
        let bill = spdx::read(spdx.get().as_bytes()).map_err(Trouble::permanent)?;
        known.report(&bill)
    };
    let report = tokio::task::spawn_blocking(work).await;
    let written = Written {
        api_version: REPORT.api_version(),
        kind: REPORT.kind,
        metadata,
        image_metadata: &sbom.about,
        report: report.map_err(Trouble::permanent)??,
    };
    REPORT.apply(client, namespace, name, &written).await?;
    operator.metrics().report_made(&written.report.summary);
    Ok(())
}
