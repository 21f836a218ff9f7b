//! Who has a vulnerability: the workloads are read first, then findings a few at a time, and what both
//! share a link with is kept. So what is held grows with the answer and with what runs, never with what
//! was found.

use super::read::{self, Finding, Findings, Owner, Place, Workload};
use anyhow::Result;
use kube::Client;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Who has it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// What was asked for.
    pub(super) vulnerabilities: Vec<String>,
    /// The namespace that was looked at; all of them without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    /// The containers that have it, by namespace and workload.
    pub(super) workloads: Vec<Having>,
    /// Images that have it and that no workload looked at runs.
    pub(super) unused_images: BTreeSet<String>,
    /// How many workloads there are.
    pub(super) workload_count: usize,
    /// How many containers there are in them.
    pub(super) container_count: usize,
    /// Containers of which not everything is known yet.
    pub(super) not_scanned: usize,
    /// How many images have findings of any kind.
    pub(super) image_count: usize,
}

/// A container that has it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Having {
    pub(super) namespace: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) container: String,
    pub(super) image: String,
    #[serde(flatten)]
    pub(super) finding: Finding,
}

/// Asks the server who has any of these.
pub(super) async fn has(
    client: &Client,
    namespace: Option<&str>,
    ids: Vec<String>,
) -> Result<Answer> {
    let mut join = Join::new(ids, namespace);
    let mut places: BTreeSet<Place> = BTreeSet::new();
    read::workloads(client, namespace, |workload| {
        if namespace.is_some() {
            places.extend(workload.places());
        }
        join.workload(&workload);
    })
    .await?;
    match namespace {
        None => read::all_findings(client, |findings| join.findings(findings)).await?,
        Some(_) => {
            for place in &places {
                read::findings_at(client, place, |findings| join.findings(findings)).await?;
            }
        }
    }
    Ok(join.end())
}

/// What is known while reading.
struct Join {
    answer: Answer,
    running: Vec<Running>,
    by_link: HashMap<String, Vec<usize>>,
    /// What was told, so that two platforms of an image tell it once.
    told: HashSet<(usize, String, String, String, bool)>,
    images: BTreeMap<String, bool>,
}

/// A container that runs.
struct Running {
    namespace: String,
    owner: Owner,
    container: String,
}

impl Join {
    fn new(ids: Vec<String>, namespace: Option<&str>) -> Self {
        Join {
            answer: Answer {
                vulnerabilities: ids,
                namespace: namespace.map(str::to_owned),
                ..Answer::default()
            },
            running: Vec::new(),
            by_link: HashMap::new(),
            told: HashSet::new(),
            images: BTreeMap::new(),
        }
    }

    fn workload(&mut self, workload: &Workload) {
        self.answer.workload_count += 1;
        for container in workload.containers() {
            self.answer.container_count += 1;
            if !matches!(container.standing.scan_status.as_str(), "" | "ScanComplete") {
                self.answer.not_scanned += 1;
            }
            let Some(link) = container.link else {
                continue;
            };
            self.by_link
                .entry(link)
                .or_default()
                .push(self.running.len());
            self.running.push(Running {
                namespace: workload.namespace().into(),
                owner: workload.owner(),
                container: container.name,
            });
        }
    }

    fn findings(&mut self, report: Findings) {
        self.answer.image_count += 1;
        let (image, links) = (report.image(), report.links());
        let ids = &self.answer.vulnerabilities;
        let found = report.findings().into_iter();
        let found: Vec<Finding> = found.filter(|finding| is_any(finding, ids)).collect();
        if found.is_empty() {
            return;
        }
        let users = links.iter().filter_map(|link| self.by_link.get(link));
        let users: BTreeSet<usize> = users.flatten().copied().collect();
        *self.images.entry(image.clone()).or_default() |= !users.is_empty();
        for user in users {
            for finding in &found {
                let told = (
                    user,
                    finding.cve.clone(),
                    finding.package_name.clone(),
                    finding.installed_version.clone(),
                    finding.suppressed,
                );
                let Some(running) = self.running.get(user).filter(|_| self.told.insert(told))
                else {
                    continue;
                };
                self.answer.workloads.push(Having {
                    namespace: running.namespace.clone(),
                    kind: running.owner.kind.clone(),
                    name: running.owner.name.clone(),
                    container: running.container.clone(),
                    image: image.clone(),
                    finding: finding.clone(),
                });
            }
        }
    }

    fn end(self) -> Answer {
        let mut answer = self.answer;
        answer
            .workloads
            .sort_by(|left, right| left.key().cmp(&right.key()));
        let unused = self.images.into_iter().filter(|(_, is_used)| !is_used);
        answer.unused_images = unused.map(|(image, _)| image).collect();
        answer
    }
}

impl Having {
    fn key(&self) -> [&str; 7] {
        let Having {
            namespace,
            kind,
            name,
            container,
            image,
            finding,
        } = self;
        [
            namespace,
            kind,
            name,
            container,
            image,
            &finding.cve,
            &finding.package_name,
        ]
    }
}

/// Whether a finding is one of those asked for: by its identifier, or by an alias that its advisory
/// declares.
fn is_any(finding: &Finding, ids: &[String]) -> bool {
    ids.iter().any(|id| finding.is_called(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn workload(namespace: &str, name: &str, containers: &[(&str, &str, &str)]) -> Workload {
        let spec = containers.iter().map(|(name, tag, _)| {
            json!({"name": name, "imageRef": {
                "registry": "hub", "namespace": "art", "repository": "app", "tag": tag,
            }})
        });
        let statuses = containers.iter();
        let statuses =
            statuses.map(|(name, _, status)| json!({"name": name, "scanStatus": status}));
        let workload = json!({
            "metadata": {
                "namespace": namespace, "name": format!("deployment-{name}"),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
            },
            "spec": {"containers": Value::from_iter(spec)},
            "status": {"containerStatuses": Value::from_iter(statuses)},
        });
        serde_json::from_value(workload).unwrap()
    }

    fn findings(tag: &str, platform: &str, vulnerabilities: &Value) -> Findings {
        let report = json!({
            "metadata": {"namespace": "art", "name": format!("{tag}-{platform}")},
            "imageMetadata": {
                "registry": "hub", "registryURI": "ghcr.io", "repository": "app", "tag": tag,
                "digest": format!("sha256:{tag}{platform}"),
            },
            "report": {"results": [{"type": "dpkg", "vulnerabilities": vulnerabilities}]},
        });
        // As it comes from the server, since parts are kept as they are written.
        serde_json::from_str(&report.to_string()).unwrap()
    }

    #[test]
    fn a_cve_of_another_product_is_not_listed() {
        let complete = "ScanComplete";
        // libcrypto3 of Alpine, with the references of an advisory of AlmaLinux about mysql.
        let openssl = json!([{
            "cve": "CVE-2024-5535", "packageName": "libcrypto3", "installedVersion": "3.3.1-r1",
            "aliases": ["ALPINE-CVE-2024-5535", "CVE-2024-21193"],
            "references": ["https://example.org/CVE-2024-21193", "https://example.org/ALSA-2025:1673"],
        }]);
        for (asked, count) in [
            ("CVE-2024-5535", 1),
            ("ALPINE-CVE-2024-5535", 1),
            ("CVE-2024-21193", 0),
            ("ALSA-2025:1673", 0),
        ] {
            let mut join = Join::new(vec![asked.into()], None);
            join.workload(&workload("a", "api", &[("main", "1", complete)]));
            join.findings(findings("1", "amd", &openssl));
            assert_eq!(join.end().workloads.len(), count, "{asked}");
        }
    }

    #[test]
    fn workloads_meet_the_findings_of_what_they_run() {
        let mut join = Join::new(vec!["CVE-2024-1".into()], None);
        let complete = "ScanComplete";
        join.workload(&workload(
            "b",
            "web",
            &[("main", "1", complete), ("side", "2", complete)],
        ));
        join.workload(&workload("a", "api", &[("main", "1", "WaitingForScan")]));
        let one = json!([
            {"cve": "cve-2024-1", "packageName": "openssl", "installedVersion": "1",
             "fixedVersions": ["2"], "severity": "HIGH"},
            {"cve": "CVE-2024-2", "packageName": "openssl"},
        ]);
        join.findings(findings("1", "amd", &one));
        join.findings(findings("1", "arm", &one));
        let also = json!([{
            "cve": "GHSA-2020-1", "packageName": "zlib", "aliases": ["CVE-2024-1"],
        }]);
        join.findings(findings("2", "amd", &also));
        join.findings(findings("3", "amd", &one));
        join.findings(findings("1", "odd", &json!({"no": "list"})));
        let answer = join.end();
        let told = answer.workloads.iter();
        let told: Vec<_> = told
            .map(|one| {
                (
                    &*one.namespace,
                    &*one.name,
                    &*one.container,
                    &*one.finding.package_name,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("a", "api", "main", "openssl"),
                ("b", "web", "main", "openssl"),
                ("b", "web", "side", "zlib")
            ]
        );
        assert_eq!(answer.workloads[0].image, "ghcr.io/app:1");
        assert_eq!(
            answer.unused_images,
            BTreeSet::from(["ghcr.io/app:3".to_owned()])
        );
        assert_eq!((answer.workload_count, answer.container_count), (2, 3));
        assert_eq!((answer.not_scanned, answer.image_count), (1, 5));
    }
}
