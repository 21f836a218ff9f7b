//! What a workload has to upgrade: its report is found by what people call the workload, and read
//! with its findings.

use super::asked::Wanted;
use super::read::{self, Container, Owner};
use anyhow::{Result, bail};
use kube::Client;
use muster_web::upgrade::{Placed, Upgrades, rank};
use serde::Serialize;
use std::collections::BTreeSet;

/// So many names are offered where none was meant.
const OFFERED: usize = 10;

/// What is to be done about a workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    pub(super) namespace: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) containers: Vec<Standing>,
    #[serde(flatten)]
    pub(super) upgrades: Upgrades,
}

/// How far a container is scanned.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Standing {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) scan_status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// Asks the server what a workload has to upgrade.
pub(super) async fn of(client: &Client, namespace: &str, wanted: &Wanted) -> Result<Plan> {
    let mut known: Vec<(String, Owner)> = Vec::new();
    let see = |workload: read::Workload| known.push((workload.name().into(), workload.owner()));
    read::workloads(client, Some(namespace), see).await?;
    let (report, owner) = find(namespace, wanted, known)?;
    let Some(workload) = read::workload(client, namespace, &report).await? else {
        bail!("{wanted} in namespace {namespace} is gone; ask again for what took its place");
    };
    let containers = workload.containers();
    let placed = containers
        .iter()
        .zip(workload.findings())
        .flat_map(|(container, reports)| placed(container, reports));
    let upgrades = rank(placed.collect());
    Ok(Plan {
        namespace: namespace.into(),
        kind: owner.kind,
        name: owner.name,
        containers: containers.into_iter().map(standing).collect(),
        upgrades,
    })
}

fn placed(container: &Container, reports: Vec<read::Findings>) -> Vec<Placed> {
    let findings = reports.into_iter().flat_map(|report| {
        let (image, findings) = (report.image(), report.findings());
        let image = match image.is_empty() {
            true => container.image.clone(),
            false => image,
        };
        findings.into_iter().map(move |finding| Placed {
            container: container.name.clone(),
            image: image.clone(),
            finding,
        })
    });
    findings.collect()
}

fn standing(container: Container) -> Standing {
    Standing {
        name: container.name,
        image: container.image,
        scan_status: container.standing.scan_status,
        message: container.standing.message,
    }
}

/// The report of the workload that is meant.
fn find(namespace: &str, wanted: &Wanted, known: Vec<(String, Owner)>) -> Result<(String, Owner)> {
    let called = |owner: &Owner| format!("{}/{}", owner.kind.to_lowercase(), owner.name);
    let offered = |owners: Vec<String>| {
        let owners: BTreeSet<String> = owners.into_iter().collect();
        let more = owners.len().saturating_sub(OFFERED);
        let mut text = owners
            .into_iter()
            .take(OFFERED)
            .collect::<Vec<_>>()
            .join(", ");
        if more > 0 {
            text.push_str(&format!(" and {more} more"));
        }
        text
    };
    let all: Vec<String> = known.iter().map(|(_, owner)| called(owner)).collect();
    let is_meant = |(report, owner): &(String, Owner)| wanted.is(owner) || wanted.is_report(report);
    let mut meant: Vec<_> = known.into_iter().filter(is_meant).collect();
    match (meant.pop(), meant.as_slice()) {
        (Some(found), []) => Ok(found),
        (Some(last), others) => {
            let owners = others.iter().chain([&last]).map(|(_, owner)| {
                let group = owner
                    .api_version
                    .split_once('/')
                    .map_or("", |(group, _)| group);
                let dot = if group.is_empty() { "" } else { "." };
                format!("{}{dot}{group}/{}", owner.kind.to_lowercase(), owner.name)
            });
            bail!(
                "several workloads in namespace {namespace} are called {wanted}: say which of {}",
                offered(owners.collect())
            )
        }
        (None, _) if all.is_empty() => bail!(
            "no workload in namespace {namespace} has a report; is the namespace right (-n), and is it selected by the WorkloadScanConfiguration?"
        ),
        (None, _) => bail!(
            "no report of {wanted} in namespace {namespace}; there are {} (pods are reported with the workload that owns them)",
            offered(all)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::asked::Asked;
    use super::*;

    #[test]
    fn a_workload_is_found_by_kind_and_name_or_by_a_name_that_is_clear() {
        let owner = |version: &str, kind: &str, name: &str| {
            let report = format!("{}-{name}", kind.to_lowercase());
            let owner = Owner {
                api_version: version.into(),
                kind: kind.into(),
                name: name.into(),
                ..Owner::default()
            };
            (report, owner)
        };
        let known = || {
            vec![
                owner("apps/v1", "Deployment", "web"),
                owner("apps/v1", "StatefulSet", "web"),
                owner("batch/v1", "CronJob", "nightly"),
            ]
        };
        let asked = |word: &str| match Asked::parse(&[word.to_owned()]).unwrap() {
            Asked::Workload(wanted) => find("shop", &wanted, known()).map(|(report, _)| report),
            Asked::Vulnerabilities(_) => panic!("{word} is a workload"),
        };
        for (word, report) in [
            ("deploy/web", "deployment-web"),
            ("statefulsets/web", "statefulset-web"),
            ("nightly", "cronjob-nightly"),
            ("deployment-web", "deployment-web"),
        ] {
            assert_eq!(asked(word).unwrap(), report);
        }
        for (word, told) in [
            (
                "web",
                "say which of deployment.apps/web, statefulset.apps/web",
            ),
            (
                "pod/web",
                "no report of pod/web in namespace shop; there are cronjob/nightly",
            ),
        ] {
            let error = asked(word).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let Asked::Workload(web) = Asked::parse(&["web".to_owned()]).unwrap() else {
            panic!("a workload");
        };
        let error = find("shop", &web, Vec::new()).unwrap_err().to_string();
        assert!(error.contains("is the namespace right"), "{error}");
    }
}
