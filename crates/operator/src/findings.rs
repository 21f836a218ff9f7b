//! The third stage: what is wrong with an image. Its SBOM is matched with the vulnerability data,
//! and the report written under the image's name.

use crate::message::Message;
use crate::object::{REPORT, SBOM, made_for, now};
use crate::reconcile;
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_advisories::Opened;
use muster_scan::matching;
use muster_scan::report::Report;
use muster_scan::sbom::spdx;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What is needed of an SBOM.
#[derive(Deserialize)]
struct Sbom {
    metadata: ObjectMeta,
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

/// Matches the SBOM of an image.
pub(crate) async fn scan(operator: &Operator, message: &Message) -> Result<(), Trouble> {
    let (job, client) = (&message.job, operator.client());
    let name = message.image.as_deref().unwrap_or_default();
    if reconcile::live(operator, job).await?.is_none() {
        return Ok(());
    }
    let Some(sbom) = SBOM.read::<Sbom>(client, &job.namespace, name).await? else {
        return Ok(());
    };
    let spdx = sbom
        .spdx
        .ok_or_else(|| Trouble::permanent("the SBOM is empty"))?;
    let known = operator.knowledge()?;
    let report = tokio::task::spawn_blocking(move || report(&spdx, &known));
    let report = report.await.map_err(Trouble::permanent)??;
    let uid = sbom.metadata.uid.unwrap_or_default();
    let written = Written {
        api_version: REPORT.api_version(),
        kind: REPORT.kind,
        metadata: made_for(job, name, SBOM, name, &uid),
        image_metadata: &sbom.about,
        report,
    };
    Ok(REPORT.apply(client, &job.namespace, name, &written).await?)
}

fn report(spdx: &RawValue, known: &Opened) -> Result<Report, Trouble> {
    let database = &*known.database;
    let bill = spdx::read(spdx.get().as_bytes()).map_err(Trouble::permanent)?;
    let findings =
        matching::find_at(&bill, database, jiff::Timestamp::now()).map_err(Trouble::permanent)?;
    let mut report = Report::new(&bill, &findings, database.metadata(), Some(&now()));
    report.enrich(&known.exploitation);
    Ok(report)
}
