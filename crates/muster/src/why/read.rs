//! Reading for people at a terminal: what cannot be read is explained, with what to do about it.

use anyhow::Result;
use kube::{Client, Error};
pub(super) use muster_web::finding::{Finding, Findings};
use muster_web::read::{self, Limits, ReadError};
pub(super) use muster_web::workload::{Container, Owner, Place, Workload};

/// Reads all workloads of a namespace, or of all, without their findings.
pub(super) async fn workloads(
    client: &Client,
    namespace: Option<&str>,
    see: impl FnMut(Workload),
) -> Result<()> {
    let all = read::workloads(client, namespace, Limits::NONE, see).await;
    all.map(|_| ()).map_err(explained)
}

/// Reads one workload with its findings; none if it is gone.
pub(super) async fn workload(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Workload>> {
    let found = read::workload(client, namespace, name).await;
    found.map_err(explained)
}

/// Reads the findings of all images there are.
pub(super) async fn all_findings(client: &Client, see: impl FnMut(Findings)) -> Result<()> {
    read::all_findings(client, see).await.map_err(explained)
}

/// Reads the findings of the images of a place.
pub(super) async fn findings_at(
    client: &Client,
    place: &Place,
    see: impl FnMut(Findings),
) -> Result<()> {
    let all = read::findings_at(client, place, see).await;
    all.map_err(explained)
}

/// What to do about it is said where it is known.
fn explained(error: ReadError) -> anyhow::Error {
    let ReadError { what, source } = error;
    let hint = match &source {
        Error::Api(status) => match status.code {
            403 => "; ask for one namespace with `-n NAMESPACE`, or for the right to read them",
            404 => {
                "; this server does not keep findings: install Muster there, or name another one with --kubeconfig"
            }
            410 => "; they changed while they were read, so ask again",
            _ => "",
        },
        Error::HyperError(_) | Error::Service(_) => {
            "; is the server running? name another one with --kubeconfig"
        }
        _ => "",
    };
    anyhow::Error::new(source).context(format!("reading {what}{hint}"))
}
