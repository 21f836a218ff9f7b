//! A small world to look at: two teams, their workloads, what was found in their images, what their
//! resources fail, and a scan under way. Nothing is scanned here.

use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::{Value, json};

const STORAGE: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";
const SCANNER: &str = "sbomscanner.kubewarden.io/v1alpha1";

/// What an attacker would call things.
const STRANGE: &str = "<script>alert('muster')</script>";

pub(super) struct Stage {
    pub(super) muster: Muster,
    pub(super) kubectl: Kubectl,
}

impl Stage {
    pub(super) fn set() -> Result<Stage> {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        let stage = Stage { muster, kubectl };
        let mut objects = Vec::new();
        for namespace in ["shop", "bank", "artifacts"] {
            objects.push(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            );
        }
        stage.create(objects)?;
        let mut objects = vec![
            deployment("shop", "checkout"),
            deployment("shop", "catalogue"),
            deployment("bank", "ledger"),
        ];
        for (name, repository, tag) in IMAGES {
            objects.push(image(name, repository, tag));
        }
        for (name, repository, tag, findings) in [
            ("nginx", "library/nginx", "1.25", nginx()),
            ("catalogue", "shop/catalogue", "2.4.0", catalogue()),
            ("ledger", "bank/ledger", "7", ledger()),
        ] {
            objects.push(report(name, repository, tag, findings));
        }
        objects.push(bill());
        objects.extend(registry());
        stage.create(objects)?;
        stage.workload(
            "shop",
            "checkout",
            &[
                ("web", "library/nginx", "1.25"),
                ("session", "shop/session", "3"),
            ],
        )?;
        stage.workload("shop", "catalogue", &[("app", "shop/catalogue", "2.4.0")])?;
        stage.workload("bank", "ledger", &[("app", "bank/ledger", "7")])?;
        stage.audit("shop", "checkout")?;
        stage.create(vec![
            history("shop", "namespace", "namespace"),
            history("bank", "namespace", "namespace"),
            history("shop", "deployment-checkout", "workload"),
        ])?;
        let progress = json!({"status": {
            "imagesCount": 8, "scannedImagesCount": 2, "failedImagesCount": 1,
            "conditions": [{"type": "InProgress", "status": "True", "reason": "SBOMGenerationInProgress",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }});
        stage.kubectl.succeed(&[
            "patch",
            "scanjob",
            "nightly-1",
            "-n",
            "artifacts",
            "--subresource=status",
            "--type=merge",
            "-p",
            &progress.to_string(),
        ])?;
        Ok(stage)
    }

    pub(super) fn create(&self, objects: Vec<Value>) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.kubectl
            .succeed_with(&["create", "-f", "-"], &list.to_string())?;
        Ok(())
    }

    fn uid(&self, namespace: &str, name: &str) -> Result<String> {
        let uid = [
            "get",
            "deployment",
            name,
            "-n",
            namespace,
            "-o",
            "jsonpath={.metadata.uid}",
        ];
        self.kubectl.succeed(&uid)
    }

    /// The report of a workload whose containers run these.
    fn workload(
        &self,
        namespace: &str,
        name: &str,
        containers: &[(&str, &str, &str)],
    ) -> Result<()> {
        let uid = self.uid(namespace, name)?;
        let containers = containers.iter().map(|(name, repository, tag)| {
            json!({"name": name, "imageRef": {
                "registry": "hub", "namespace": "artifacts", "repository": repository, "tag": tag,
            }})
        });
        self.create(vec![json!({
            "apiVersion": STORAGE, "kind": "WorkloadScanReport",
            "metadata": {
                "name": format!("deployment-{name}"), "namespace": namespace,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}],
            },
            "spec": {"containers": Value::from_iter(containers)},
        })])
    }

    /// What a workload fails.
    fn audit(&self, namespace: &str, name: &str) -> Result<()> {
        let uid = self.uid(namespace, name).context("the workload")?;
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}]);
        let line = |policy: &str, result: &str, severity: &str, message: &str| {
            json!({"policy": policy, "source": "kubewarden", "result": result, "severity": severity,
                "message": message, "properties": {"policy-name": policy}})
        };
        self.create(vec![
            json!({
                "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
                "metadata": {"name": uid, "namespace": namespace, "ownerReferences": owner},
                "scope": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": namespace, "uid": uid},
                "summary": {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0},
                "results": [
                    line("clusterwide-no-latest", "fail", "high", &format!("container session uses the tag latest {STRANGE}")),
                    line("clusterwide-owner-label", "pass", "low", ""),
                ],
            }),
            json!({
                "apiVersion": "aquasecurity.github.io/v1alpha1", "kind": "ConfigAuditReport",
                "metadata": {"name": format!("deployment-{name}"), "namespace": namespace, "ownerReferences": owner,
                    "labels": {"trivy-operator.resource.kind": "Deployment", "trivy-operator.resource.name": name}},
                "report": {
                    "summary": {"criticalCount": 0, "highCount": 1, "mediumCount": 1, "lowCount": 0},
                    "checks": [
                        {"checkID": "KSV-0014", "title": "The root file system can be written to", "severity": "HIGH", "success": false,
                         "messages": ["container \"web\" has no read-only root file system"], "remediation": "Set readOnlyRootFilesystem to true.",
                         "scope": {"type": "Container", "value": "web"}},
                        {"checkID": "KSV-0011", "title": "No limit of CPU", "severity": "MEDIUM", "success": false,
                         "messages": ["container \"session\" has no limit"]},
                    ],
                },
            }),
        ])
    }
}

/// Images that are known; of the last one nothing has been scanned.
const IMAGES: [(&str, &str, &str); 4] = [
    ("nginx", "library/nginx", "1.25"),
    ("catalogue", "shop/catalogue", "2.4.0"),
    ("ledger", "bank/ledger", "7"),
    ("session", "shop/session", "3"),
];

/// A history of something that got worse, and then better.
fn history(namespace: &str, name: &str, of: &str) -> Value {
    let today = jiff::Timestamp::now().as_second();
    let past = [
        (80, 2, 3, 1, 4),
        (61, 2, 4, 1, 4),
        (47, 3, 6, 2, 5),
        (33, 3, 5, 2, 5),
        (20, 1, 4, 2, 3),
        (6, 1, 3, 1, 3),
    ];
    let points = past.map(|(days, critical, high, medium, low)| {
        let time = jiff::Timestamp::from_second(today - days * 24 * 60 * 60);
        json!({
            "time": time.unwrap_or_default().to_string(),
            "summary": {"critical": critical, "high": high, "medium": medium, "low": low},
        })
    });
    json!({
        "apiVersion": STORAGE, "kind": "FindingHistory",
        "metadata": {"name": name, "namespace": namespace, "labels": {"sbomscanner.kubewarden.io/history": of}},
        "points": points,
    })
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
        }},
    })
}

fn about(name: &str, repository: &str, tag: &str) -> Value {
    json!({
        "registry": "hub", "registryURI": "registry.example", "repository": repository, "tag": tag,
        "digest": format!("sha256:{name:0>64}"),
        "platform": {"os": "linux", "architecture": "amd64"},
    })
}

fn image(name: &str, repository: &str, tag: &str) -> Value {
    json!({
        "apiVersion": STORAGE, "kind": "Image", "metadata": {"name": name, "namespace": "artifacts"},
        "imageMetadata": about(name, repository, tag),
        "layers": [
            {"command": "Q09QWSByb290ZnMgLw==", "digest": "sha256:aa", "diffID": "sha256:base"},
            {"command": "UlVOIGFwdC1nZXQgaW5zdGFsbCAteSB4ei11dGlscw==", "digest": "sha256:bb", "diffID": "sha256:tools"},
        ],
    })
}

fn report(name: &str, repository: &str, tag: &str, findings: Vec<Value>) -> Value {
    let count = |severity: &str| {
        let findings = findings.iter();
        findings
            .filter(|one| one["severity"] == severity && one["suppressed"] != true)
            .count()
    };
    let suppressed = findings
        .iter()
        .filter(|one| one["suppressed"] == true)
        .count();
    json!({
        "apiVersion": STORAGE, "kind": "VulnerabilityReport",
        "metadata": {"name": name, "namespace": "artifacts"},
        "imageMetadata": about(name, repository, tag),
        "report": {
            "scannedAt": "2026-01-01T00:00:00Z",
            "summary": {
                "critical": count("CRITICAL"), "high": count("HIGH"), "medium": count("MEDIUM"),
                "low": count("LOW"), "unknown": count("UNKNOWN"), "suppressed": suppressed,
            },
            "results": [{"class": "os-pkgs", "type": "debian", "target": "debian 12", "vulnerabilities": findings}],
        },
    })
}

fn finding(
    cve: &str,
    package: &str,
    installed: &str,
    fixed: &[&str],
    severity: &str,
    title: &str,
) -> Value {
    // The advisories of the distribution.
    let aliases: &[&str] = match package {
        "xz-utils" => &["DSA-5649-1"],
        "openssl" => &["DSA-5764-1"],
        _ => &[],
    };
    json!({
        "cve": cve, "packageName": package, "installedVersion": installed, "fixedVersions": fixed,
        "severity": severity, "title": title, "purl": format!("pkg:deb/debian/{package}@{installed}"),
        "references": ["https://example.org/xz", "https://example.org/CVE-2024-21193", "javascript:alert(1)"],
        "aliases": aliases, "diffID": "sha256:tools",
        "description": format!("{title}. What this means in full is told by whoever found it. {STRANGE}"),
    })
}

fn nginx() -> Vec<Value> {
    let mut worst = finding(
        "CVE-2024-3094",
        "xz-utils",
        "5.6.0-0.2",
        &["5.6.1+really5.4.5-1"],
        "CRITICAL",
        "Malicious code in the distributed source",
    );
    worst["knownExploited"] = json!(true);
    worst["epssScore"] = json!(0.87);
    vec![
        worst,
        finding(
            "CVE-2024-0727",
            "openssl",
            "3.0.11-1",
            &["3.0.13-1"],
            "HIGH",
            "Denial of service via null dereference",
        ),
        finding(
            "CVE-2023-5678",
            "openssl",
            "3.0.11-1",
            &["3.0.13-1"],
            "MEDIUM",
            "Generating excessively long keys may be very slow",
        ),
        finding(
            "CVE-2023-7008",
            "libsystemd0",
            "252.19-1",
            &[],
            "MEDIUM",
            "Unsigned name response is not refused",
        ),
        finding("CVE-2011-3374", "apt", "2.6.1", &[], "LOW", STRANGE),
    ]
}

fn catalogue() -> Vec<Value> {
    vec![
        finding(
            "CVE-2024-0727",
            "openssl",
            "3.0.11-1",
            &["3.0.13-1"],
            "HIGH",
            "Denial of service via null dereference",
        ),
        finding(
            "CVE-2024-2961",
            "libc6",
            "2.36-9",
            &["2.36-9+deb12u7"],
            "HIGH",
            "Out of bounds write in a character conversion",
        ),
        finding(
            "CVE-2019-1010022",
            "libc6",
            "2.36-9",
            &[],
            "LOW",
            "Stack guard protection bypass",
        ),
    ]
}

fn ledger() -> Vec<Value> {
    let mut harmless = finding(
        "CVE-2023-0001",
        "curl",
        "7.88.1",
        &["7.88.2"],
        "HIGH",
        "A heap overflow in a proxy handshake",
    );
    harmless["suppressed"] = json!(true);
    harmless["vexStatus"] = json!({"repository": "vex.example", "status": "not_affected", "statement": "the vulnerable code is not present"});
    vec![
        harmless,
        finding(
            "CVE-2024-0727",
            "openssl",
            "3.0.11-1",
            &["3.0.13-1"],
            "HIGH",
            "Denial of service via null dereference",
        ),
    ]
}

fn bill() -> Value {
    let package = |name: &str, version: &str| {
        json!({"name": name, "versionInfo": version, "licenseDeclared": "GPL-2.0-only", "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": format!("pkg:deb/debian/{name}@{version}")},
        ]})
    };
    json!({
        "apiVersion": STORAGE, "kind": "SBOM", "metadata": {"name": "nginx", "namespace": "artifacts"},
        "imageMetadata": about("nginx", "library/nginx", "1.25"),
        "spdx": {"packages": [
            {"name": "library/nginx"}, package("xz-utils", "5.6.0-0.2"), package("openssl", "3.0.11-1"),
        ]},
    })
}

fn registry() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": SCANNER, "kind": "Registry", "metadata": {"name": "hub", "namespace": "artifacts"},
            "spec": {"uri": "registry.example", "scanInterval": "24h", "catalogType": "OCIDistribution"},
        }),
        json!({
            "apiVersion": SCANNER, "kind": "ScanJob", "metadata": {"name": "nightly-1", "namespace": "artifacts"},
            "spec": {"registry": "hub"},
        }),
    ]
}
