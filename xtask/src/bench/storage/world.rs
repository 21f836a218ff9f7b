//! What the bench stores: a made-up cluster, the same in every run. Images with two platforms each,
//! whose findings overlap for the most part, and workloads that run them. The last image is a
//! sidecar that many workloads run beside their own.

use serde_json::{Value, json};
use std::fmt::Write;

/// Where images and their findings are.
pub(super) const ARTIFACTS: &str = "artifacts";
const REGISTRY: &str = "hub";
const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];
/// Namespaces that workloads are in; a prime, so that each has some with a sidecar.
pub(super) const TEAMS: usize = 19;
/// Vulnerabilities that are known at all; a prime, so that steps through them do not meet.
const KNOWN: usize = 20_011;
/// Every so many findings of a platform is one that the other does not have.
const OWN: usize = 30;
/// How the severities are spread.
const SEVERITIES: [&str; 10] = [
    "CRITICAL", "HIGH", "HIGH", "MEDIUM", "MEDIUM", "MEDIUM", "MEDIUM", "LOW", "LOW", "UNKNOWN",
];
/// Every so many vulnerabilities is suppressed.
const SUPPRESSED: usize = 20;

/// How much of everything there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Population {
    /// Workloads, each with a report.
    pub(super) workloads: usize,
    /// Images, each with two platforms.
    pub(super) images: usize,
    /// Findings of one platform of one image.
    pub(super) findings: usize,
    /// Workloads that run the sidecar.
    pub(super) sharing: usize,
}

/// The cluster.
#[derive(Debug)]
pub(super) struct World {
    population: Population,
    /// All that is known of each vulnerability, as it stands in a report.
    known: Vec<String>,
}

/// The name of an object and its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl World {
    pub(super) fn new(population: Population) -> Self {
        World {
            population,
            known: (0..KNOWN).map(vulnerability).collect(),
        }
    }

    pub(super) fn population(&self) -> Population {
        self.population
    }

    /// How many Images there are, and as many VulnerabilityReports.
    pub(super) fn scanned(&self) -> usize {
        self.population.images * PLATFORMS.len()
    }

    /// The image that many workloads run.
    pub(super) fn sidecar(&self) -> usize {
        self.population.images - 1
    }

    /// The images that few workloads run.
    pub(super) fn applications(&self) -> usize {
        self.population.images - 1
    }

    /// Where an Image and its VulnerabilityReport are.
    pub(super) fn place_of_scanned(&self, number: usize) -> Place {
        let (image, platform) = (number / PLATFORMS.len(), number % PLATFORMS.len());
        Place {
            namespace: ARTIFACTS.into(),
            name: format!("image-{image}-{platform}"),
        }
    }

    /// The number of an image's first platform.
    pub(super) fn first_platform(image: usize) -> usize {
        image * PLATFORMS.len()
    }

    pub(super) fn place_of_workload(&self, number: usize) -> Place {
        Place {
            namespace: format!("team-{:02}", number % TEAMS),
            name: format!("deployment-app-{number}"),
        }
    }

    pub(super) fn image(&self, number: usize) -> Value {
        json!({
            "apiVersion": super::API_VERSION, "kind": "Image",
            "metadata": self.metadata(number), "imageMetadata": image_metadata(number),
            "layers": (0..5).map(|layer| json!({
                "digest": digest("layer", number * 5 + layer),
                "diffID": digest("diff", number * 5 + layer),
                "command": "UlVOIGFwdC1nZXQgaW5zdGFsbA==",
            })).collect::<Vec<_>>(),
        })
    }

    /// The VulnerabilityReport of an image. Each round finds something else.
    pub(super) fn report(&self, number: usize, round: usize) -> String {
        let head = json!({
            "apiVersion": super::API_VERSION, "kind": "VulnerabilityReport",
            "metadata": self.metadata(number), "imageMetadata": image_metadata(number),
        });
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        format!("{head},\"report\":{}}}", self.findings(number, round))
    }

    /// The same as a change of what is there.
    pub(super) fn new_findings(&self, number: usize, round: usize) -> String {
        format!("{{\"report\":{}}}", self.findings(number, round))
    }

    fn findings(&self, number: usize, round: usize) -> String {
        let (image, platform) = (number / PLATFORMS.len(), number % PLATFORMS.len());
        let total = self.population.findings;
        let mut list = String::with_capacity(total * 1024);
        for at in 0..total {
            let step = match at {
                0 => 3 * total + round,
                at if at % OWN == 0 => at + (1 + platform) * total,
                at => at,
            };
            if at > 0 {
                list.push(',');
            }
            list.push_str(&self.known[(image * 37 + step * 67) % KNOWN]);
        }
        let version = round + 1;
        format!(
            "{{\"scannedAt\":\"2026-01-01T00:00:00Z\",\"scanner\":{{\"name\":\"muster\",\"version\":\
             \"0.1.0\"}},\"database\":{{\"revision\":\"{version}\"}},\"results\":[{{\"target\":\
             \"debian 12\",\"class\":\"os-pkgs\",\"type\":\"debian\",\"vulnerabilities\":[{list}]}}]}}"
        )
    }

    pub(super) fn workload(&self, number: usize) -> Value {
        let place = self.place_of_workload(number);
        let container = |name: &str, image: usize| {
            let metadata = image_metadata(World::first_platform(image));
            json!({"name": name, "imageRef": {
                "registry": REGISTRY, "namespace": ARTIFACTS,
                "repository": metadata["repository"], "tag": metadata["tag"],
            }})
        };
        let mut containers = vec![container("app", number % self.applications())];
        if self.shares(number) {
            containers.push(container("sidecar", self.sidecar()));
        }
        json!({
            "apiVersion": super::API_VERSION, "kind": "WorkloadScanReport",
            "metadata": {
                "namespace": place.namespace, "name": place.name,
                "labels": {"app": format!("app-{number}")},
            },
            "spec": {"containers": containers},
        })
    }

    /// Workloads with the sidecar are spread evenly.
    fn shares(&self, number: usize) -> bool {
        let every = self.population.workloads / self.population.sharing;
        number.is_multiple_of(every) && number / every < self.population.sharing
    }

    /// How many workloads run an image.
    pub(super) fn runs(&self, image: usize) -> usize {
        let workloads = 0..self.population.workloads;
        match image == self.sidecar() {
            true => workloads.filter(|number| self.shares(*number)).count(),
            false => workloads
                .filter(|number| number % self.applications() == image)
                .count(),
        }
    }

    fn metadata(&self, number: usize) -> Value {
        let place = self.place_of_scanned(number);
        json!({"namespace": place.namespace, "name": place.name})
    }
}

fn image_metadata(number: usize) -> Value {
    let (image, platform) = (number / PLATFORMS.len(), number % PLATFORMS.len());
    json!({
        "registry": REGISTRY, "registryURI": "registry.example.com",
        "repository": format!("team-{}/app-{image}", image % TEAMS), "tag": "1.0.0",
        "platform": PLATFORMS[platform],
        "digest": digest("manifest", number), "indexDigest": digest("index", image),
    })
}

/// Something that looks like a digest and compresses as badly.
fn digest(of: &str, number: usize) -> String {
    let salt = of.bytes().fold(0, |salt, byte| salt * 31 + u64::from(byte));
    let mut words = Words(number as u64 + (salt << 32));
    let mut text = String::from("sha256:");
    for _ in 0..4 {
        let _ = write!(text, "{:016x}", words.next());
    }
    text
}

/// A vulnerability of about a kilobyte, as databases describe them.
fn vulnerability(number: usize) -> String {
    let mut words = Words(number as u64 + 1);
    let package = format!("lib{}{}", words.word(), number % 97);
    let (major, minor) = (words.next() % 9, words.next() % 30);
    let id = format!("CVE-{}-{number:05}", 2015 + number % 11);
    let mut finding = json!({
        "cve": id, "title": format!("{package}: {}", words.sentence(8)),
        "description": words.sentence(50), "packageName": package,
        "purl": format!("pkg:deb/debian/{package}@{major}.{minor}-1?arch=amd64&distro=debian-12"),
        "installedVersion": format!("{major}.{minor}-1"),
        "fixedVersions": [format!("{major}.{}-1", minor + 1)],
        "status": "fixed", "diffID": digest("layer", number % 500),
        "severity": SEVERITIES[number % SEVERITIES.len()], "severitySource": "debian",
        "references": [
            format!("https://security.example.org/advisories/{}", id.to_lowercase()),
            format!("https://git.example.org/{package}/commit/{:016x}", words.next()),
        ],
        "cvss": {"nvd": {"v3vector": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N", "v3score": "7.5"}},
        "publishedAt": "2025-06-01T00:00:00Z",
    });
    if number.is_multiple_of(SUPPRESSED) {
        finding["suppressed"] = json!(true);
    }
    finding.to_string()
}

/// An endless row of numbers, and of words made from them.
struct Words(u64);

impl Words {
    const ALL: &str = "a buffer overflow in the parser of this library allows remote attackers to \
        cause denial service or execute arbitrary code via crafted input that was not checked \
        before memory copied heap stack integer underflow use after free race condition kernel \
        module header length field certificate validation path traversal injection request \
        response smuggling proxy cache key collision timing side channel signature bypass \
        privileged user container escape symbolic link archive extraction unbounded recursion \
        regular expression compression bomb dereference null pointer uninitialised variable";

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn word(&mut self) -> &'static str {
        let all = Words::ALL.split_whitespace();
        let at = self.next() as usize % all.clone().count();
        all.clone().nth(at).unwrap_or_default()
    }

    fn sentence(&mut self, length: usize) -> String {
        let words: Vec<_> = (0..length).map(|_| self.word()).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workloads_run_an_image_as_are_said_to() {
        let world = World::new(Population {
            workloads: 40,
            images: 12,
            findings: 60,
            sharing: 7,
        });
        let workloads: Vec<Value> = (0..40).map(|number| world.workload(number)).collect();
        for image in 0..12 {
            let repository = &image_metadata(World::first_platform(image))["repository"];
            let runs = |workload: &&Value| {
                let containers = workload["spec"]["containers"].as_array().unwrap();
                let mut containers = containers.iter();
                containers.any(|container| container["imageRef"]["repository"] == *repository)
            };
            let count = workloads.iter().filter(runs).count();
            assert_eq!(count, world.runs(image), "image {image}");
        }
        assert_eq!(world.runs(world.sidecar()), 7);
    }

    #[test]
    fn the_platforms_of_an_image_share_most_of_their_findings() {
        let world = World::new(Population {
            workloads: 2,
            images: 2,
            findings: 60,
            sharing: 1,
        });
        let found = |number, round| {
            let report: Value = serde_json::from_str(&world.report(number, round)).unwrap();
            let list = report.pointer("/report/results/0/vulnerabilities").unwrap();
            let ids = list.as_array().unwrap().iter();
            ids.map(|finding| finding["cve"].as_str().unwrap().to_owned())
                .collect::<std::collections::BTreeSet<_>>()
        };
        let (one, other, later) = (found(0, 0), found(1, 0), found(0, 1));
        assert_eq!(one.len(), 60);
        assert_eq!(one.intersection(&other).count(), 59);
        assert_eq!(one.intersection(&later).count(), 59);
        let change: Value = serde_json::from_str(&world.new_findings(0, 1)).unwrap();
        let whole: Value = serde_json::from_str(&world.report(0, 1)).unwrap();
        assert_eq!(change["report"], whole["report"]);
    }
}
