//! Reports of workloads: who owns one, what its containers run, and how far that is scanned.

use crate::finding::{Findings, Report};
use crate::upgrade::Counts;
use muster_api::link;
use serde::Deserialize;
use serde_json::Value;

/// Who is in charge of a workload.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// Group and version of the workload.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    owner_references: Option<Vec<Owner>>,
}

/// A WorkloadScanReport, with or without its findings.
#[derive(Debug, Deserialize)]
pub struct Workload {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    summary: Option<Summary>,
    /// Asked for with the findings only.
    #[serde(default)]
    containers: Option<Vec<Scanned>>,
}

#[derive(Debug, Deserialize)]
struct Spec {
    #[serde(default)]
    containers: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    container_statuses: Option<Vec<Standing>>,
}

/// Findings by severity, as reports count them.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Summary {
    critical: usize,
    high: usize,
    medium: usize,
    low: usize,
    unknown: usize,
    pub(crate) suppressed: usize,
}

impl Summary {
    pub(crate) fn counts(self) -> Counts {
        Counts {
            critical: self.critical,
            high: self.high,
            medium: self.medium,
            low: self.low,
            unknown: self.unknown,
        }
    }
}

/// How far a container is scanned.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Standing {
    /// `WaitingForScan`, `ScanInProgress` or `ScanComplete`.
    pub scan_status: String,
    /// Why the image cannot be scanned, if it cannot.
    pub message: Option<String>,
}

/// The findings of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Scanned {
    vulnerability_reports: Option<Vec<Quoted>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Quoted {
    namespace: String,
    name: String,
    image_metadata: Value,
    report: Option<Report>,
}

/// A container of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What its image answers to; nothing if it names none.
    pub link: Option<String>,
    /// As far as the workload says which: the host is not known to it.
    pub image: String,
    /// How far it is scanned.
    pub standing: Standing,
}

/// Where the findings of some images are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The namespace of the findings.
    pub namespace: String,
    /// The Registry.
    pub registry: String,
    /// The repository.
    pub repository: String,
}

impl Workload {
    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// The name of the report.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The identity of the report, and its revision.
    pub(crate) fn identity(&self) -> (&str, &str) {
        (&self.metadata.uid, &self.metadata.resource_version)
    }

    /// The workload; a report that nobody owns stands for itself.
    pub fn owner(&self) -> Owner {
        let owners = self.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| !owner.name.is_empty());
        owners.next().cloned().unwrap_or_else(|| Owner {
            kind: "WorkloadScanReport".into(),
            name: self.metadata.name.clone(),
            ..Owner::default()
        })
    }

    pub(crate) fn summary(&self) -> Summary {
        self.summary.unwrap_or_default()
    }

    /// Its containers.
    pub fn containers(&self) -> Vec<Container> {
        let statuses = self.status.as_ref();
        let statuses = statuses.and_then(|status| status.container_statuses.as_deref());
        let statuses = statuses.unwrap_or_default();
        let containers = self.spec.containers.iter().enumerate();
        let container = |(at, container): (usize, &Value)| Container {
            name: container["name"].as_str().unwrap_or_default().into(),
            link: link::of_container(container),
            image: named(&container["imageRef"]),
            standing: statuses.get(at).cloned().unwrap_or_default(),
        };
        containers.map(container).collect()
    }

    /// Where the findings of its images are.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.spec.containers.iter().filter_map(|container| {
            link::of_container(container)?;
            let part = |name: &str| container["imageRef"][name].as_str().map(str::to_owned);
            Some(Place {
                namespace: part("namespace")?,
                registry: part("registry")?,
                repository: part("repository")?,
            })
        })
    }

    /// The findings of each container, platform by platform.
    pub fn findings(self) -> Vec<Vec<Findings>> {
        let containers = self.containers.into_iter().flatten();
        let quoted = |scanned: Scanned| {
            let reports = scanned.vulnerability_reports.into_iter().flatten();
            let reports = reports.map(|quoted| {
                Findings::quoted(
                    quoted.namespace,
                    quoted.name,
                    quoted.image_metadata,
                    quoted.report,
                )
            });
            reports.collect()
        };
        containers.map(quoted).collect()
    }
}

fn named(reference: &Value) -> String {
    let part = |name: &str| reference[name].as_str().filter(|text| !text.is_empty());
    let repository = part("repository").unwrap_or_default();
    match (part("tag"), part("digest")) {
        (Some(tag), _) => format!("{repository}:{tag}"),
        (None, Some(digest)) => format!("{repository}@{digest}"),
        (None, None) => repository.into(),
    }
}
