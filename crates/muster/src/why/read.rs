//! What is read of the server's objects, and no more: pages of a few reports at a time, of which only
//! what an answer needs is kept.

use anyhow::{Context, Result};
use kube::api::{ListMeta, ListParams};
use kube::{Client, Error};
use muster_api::{image, link, storage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Findings are large, and come a few reports at a time.
const FINDINGS_AT_ONCE: u32 = 8;
/// What workloads run is small.
const WORKLOADS_AT_ONCE: u32 = 500;

/// Who is in charge of a workload.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    owner_references: Option<Vec<Owner>>,
}

/// A WorkloadScanReport without its findings.
#[derive(Debug, Deserialize)]
pub(super) struct Workload {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
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

/// How far a container is scanned.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Standing {
    pub(super) scan_status: String,
    pub(super) message: Option<String>,
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
    image_metadata: Value,
    report: Option<Report>,
}

/// A container of a workload.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) link: Option<String>,
    /// As far as the workload says which: the host is not known to it.
    pub(super) image: String,
    pub(super) standing: Standing,
}

/// Where the findings of some images are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) namespace: String,
    registry: String,
    repository: String,
}

impl Workload {
    pub(super) fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// The name of the report.
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The workload; a report that nobody owns stands for itself.
    pub(super) fn owner(&self) -> Owner {
        let owners = self.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| !owner.name.is_empty());
        owners.next().cloned().unwrap_or_else(|| Owner {
            kind: "WorkloadScanReport".into(),
            name: self.metadata.name.clone(),
            ..Owner::default()
        })
    }

    pub(super) fn containers(&self) -> Vec<Container> {
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
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
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

    /// The findings of each container, platform by platform, with the image they are about.
    pub(super) fn findings(self) -> Vec<Vec<(String, Vec<Finding>)>> {
        let containers = self.containers.into_iter().flatten();
        let quoted = |scanned: Scanned| {
            let reports = scanned.vulnerability_reports.into_iter().flatten();
            let reports = reports.map(|quoted| {
                let about = json!({ "imageMetadata": quoted.image_metadata });
                let image = image::reference(&about);
                let findings = quoted.report.map(Report::findings).unwrap_or_default();
                (image.as_str().unwrap_or_default().to_owned(), findings)
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

/// A VulnerabilityReport.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Findings {
    metadata: Metadata,
    #[serde(default)]
    image_metadata: Value,
    #[serde(default)]
    report: Option<Report>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Report {
    results: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    vulnerabilities: Option<Vec<Finding>>,
}

/// A finding, as far as anybody asks why.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Finding {
    pub(super) cve: String,
    pub(super) package_name: String,
    pub(super) installed_version: String,
    pub(super) fixed_versions: Vec<String>,
    pub(super) severity: String,
    pub(super) suppressed: bool,
    #[serde(skip_serializing)]
    pub(super) purl: String,
    #[serde(skip_serializing)]
    pub(super) references: Vec<String>,
    /// What sort of package it is.
    #[serde(skip)]
    pub(super) kind: String,
}

impl Report {
    /// Nobody has vouched for the shape of results; those of another one are none.
    fn findings(self) -> Vec<Finding> {
        let Some(results) = self.results else {
            return Vec::new();
        };
        let parts: Vec<Part> = serde_json::from_str(results.get()).unwrap_or_default();
        let findings = parts.into_iter().flat_map(|part| {
            let kind = part.kind;
            let findings = part.vulnerabilities.into_iter().flatten();
            findings.map(move |finding| Finding {
                kind: kind.clone(),
                ..finding
            })
        });
        findings.collect()
    }
}

impl Findings {
    /// What its image is called.
    pub(super) fn image(&self) -> String {
        let image = image::reference(&json!({ "imageMetadata": self.image_metadata }));
        image.as_str().unwrap_or(&self.metadata.name).to_owned()
    }

    /// What its image answers to.
    pub(super) fn links(&self) -> Vec<String> {
        link::answered(&json!({
            "metadata": {"namespace": self.metadata.namespace},
            "imageMetadata": self.image_metadata,
        }))
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        self.report.map(Report::findings).unwrap_or_default()
    }
}

/// Reads all workloads of a namespace, or of all, without their findings.
pub(super) async fn workloads(
    client: &Client,
    namespace: Option<&str>,
    see: impl FnMut(Workload),
) -> Result<()> {
    let path = path("workloadscanreports", namespace);
    let parameters = ListParams::default().limit(WORKLOADS_AT_ONCE);
    each(client, &path, "computed=brief", parameters, see).await
}

/// Reads one workload with its findings; none if it is gone.
pub(super) async fn workload(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Workload>> {
    let path = format!("{}/{name}", path("workloadscanreports", Some(namespace)));
    let request = http::Request::get(&path).body(Vec::new())?;
    match client.request(request).await {
        Ok(workload) => Ok(Some(workload)),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(explained(error, "the report of a workload")),
    }
}

/// Reads the findings of all images there are.
pub(super) async fn all_findings(client: &Client, see: impl FnMut(Findings)) -> Result<()> {
    let parameters = ListParams::default().limit(FINDINGS_AT_ONCE);
    let path = path("vulnerabilityreports", None);
    each(client, &path, "", parameters, see).await
}

/// Reads the findings of the images of a place.
pub(super) async fn findings_at(
    client: &Client,
    place: &Place,
    see: impl FnMut(Findings),
) -> Result<()> {
    let escaped = |text: &str| {
        text.replace('\\', "\\\\")
            .replace(',', "\\,")
            .replace('=', "\\=")
    };
    let selector = format!(
        "imageMetadata.registry={},imageMetadata.repository={}",
        escaped(&place.registry),
        escaped(&place.repository)
    );
    let parameters = ListParams::default()
        .limit(FINDINGS_AT_ONCE)
        .fields(&selector);
    let path = path("vulnerabilityreports", Some(&place.namespace));
    each(client, &path, "", parameters, see).await
}

fn path(plural: &str, namespace: Option<&str>) -> String {
    let group = format!("/apis/{}/{}", storage::GROUP, storage::VERSION);
    match namespace {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    metadata: ListMeta,
    items: Vec<T>,
}

async fn each<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    option: &str,
    mut parameters: ListParams,
    mut see: impl FnMut(T),
) -> Result<()> {
    let what = path.rsplit('/').next().unwrap_or_default();
    loop {
        let mut request = kube::core::Request::new(path)
            .list(&parameters)
            .with_context(|| format!("asking for {what}"))?;
        if !option.is_empty() {
            let asked = format!("{}&{option}", request.uri());
            *request.uri_mut() = asked
                .parse()
                .with_context(|| format!("asking for {what}"))?;
        }
        let page: Page<T> = match client.request(request).await {
            Ok(page) => page,
            Err(error) => return Err(explained(error, what)),
        };
        page.items.into_iter().for_each(&mut see);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// What to do about it is said where it is known.
fn explained(error: Error, what: &str) -> anyhow::Error {
    let hint = match &error {
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
    let attempt = format!("reading {what}{hint}");
    anyhow::Error::new(error).context(attempt)
}
