//! What a page takes for granted beside what every machine has: manifests of the reader's own, files that
//! were brought along, a control plane that runs, and what was found in it.

use super::desk::Desk;
use anyhow::{Context, Result};
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde_json::{Value, json};
use std::io::Write;

const STORAGE: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";

/// Sets the stage for a page.
pub(super) fn set(desk: &mut Desk, page: &str) -> Result<()> {
    match page {
        "docs/audit-command.md" => audit_command(desk),
        "docs/scanning.md" => scanning(desk),
        "docs/why.md" => why(desk),
        "docs/audit.md" | "docs/backup.md" | "docs/coming-from.md" | "docs/config-audit.md" => {
            serve(desk, "")?;
            desk.prepare("kubectl create namespace shop").map(drop)
        }
        "charts/muster/README.md" => super::site::build(desk),
        "docs/install.md" => install(desk),
        "docs/pages.md" => {
            super::site::build(desk)?;
            desk.prepare("kubectl create namespace shop").map(drop)
        }
        "docs/plugin.md" => plugin(desk),
        "docs/schedules.md" => schedules(desk),
        "docs/workloads.md" => workloads(desk),
        _ => Ok(()),
    }
}

/// What a page takes for granted from some command on.
pub(super) fn before(desk: &mut Desk, page: &str, command: &str) -> Result<()> {
    if let Some(site) = &mut desk.site {
        return site.before(command);
    }
    if (page, command.starts_with("muster why deployment/app")) == ("README.md", true) {
        create(desk, &[namespace("shop")])?;
        report(desk, "shop", "deployment", "app", &[("main", "1")])?;
    }
    Ok(())
}

/// A control plane in `./muster`, to which kubectl talks.
fn serve(desk: &mut Desk, options: &str) -> Result<()> {
    let shown = ["Muster … serves …".to_owned(), "…".into()];
    desk.serve(&format!("muster up --data ./muster {options}"), &shown)?;
    desk.export("KUBECONFIG=./muster/kubeconfig")
}

fn create(desk: &Desk, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    desk.write("stage.json", list.to_string())?;
    desk.prepare("kubectl create -f stage.json").map(drop)
}

/// A cluster, and the source of Muster.
fn install(desk: &mut Desk) -> Result<()> {
    super::site::build(desk)?;
    // Copied, since a link that leads out of a directory is not followed by a scan.
    for source in ["Cargo.toml", "Cargo.lock"] {
        desk.write(source, std::fs::read(super::root().join(source))?)?;
    }
    Ok(())
}

/// A control plane that knows of a Deployment.
fn plugin(desk: &mut Desk) -> Result<()> {
    serve(desk, "--scanning=off")?;
    create(desk, &[namespace("shop")])?;
    report(desk, "shop", "deployment", "app", &[("main", "1")])
}

/// A Deployment with four faults and one exemption, a Service with none, and a chart.
fn audit_command(desk: &mut Desk) -> Result<()> {
    let probe = json!({"httpGet": {"path": "/", "port": 8080}});
    let resources = json!({"cpu": "100m", "memory": "64Mi"});
    let container = json!({
        "name": "main", "image": "web:latest",
        "readinessProbe": probe,
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "privileged": true, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "runAsUser": 20000, "runAsGroup": 20000,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {
            "exception.audit.kubewarden.io/MST-W001": "until 2027-01-31: the registry is moving",
        }},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "automountServiceAccountToken": false, "containers": [container],
                "securityContext": {"runAsNonRoot": true},
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels},
                }],
            }},
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"greeting": "hello"},
    });
    desk.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    )?;
    desk.write("chart/templates/settings.yaml", settings.to_string())?;
    desk.write("deploy/web.yaml", deployment.to_string())?;
    desk.write("deploy/service.yaml", service.to_string())
}

/// Data that was brought along, in the forms in which it is published.
fn scanning(desk: &mut Desk) -> Result<()> {
    for (archive, ecosystem, package) in [
        ("Alpine.zip", "Alpine:v3.20", "zlib"),
        ("Go.zip", "Go", "example.com/zlib"),
        ("PyPI.zip", "PyPI", "zlib"),
    ] {
        let record = json!({
            "schema_version": "1.6.0", "id": format!("OSV-{ecosystem}-1"), "modified": "2026-01-01T00:00:00Z",
            "aliases": ["CVE-2025-0009"], "summary": "a flaw of zlib",
            "affected": [{
                "package": {"ecosystem": ecosystem, "name": package},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.3.1"}]}],
            }],
        });
        desk.write(archive, zip("record.json", record.to_string().as_bytes())?)?;
    }
    let mut scores = GzEncoder::new(Vec::new(), Compression::fast());
    scores.write_all(
        b"#model_version:v2025.03.14,score_date:2026-01-01T00:00:00+0000\n\
          cve,epss,percentile\nCVE-2024-0001,0.5,0.97\n",
    )?;
    desk.write("epss_scores-current.csv.gz", scores.finish()?)?;
    let catalogue = json!({
        "title": "Known Exploited Vulnerabilities", "catalogVersion": "2026.01.01",
        "dateReleased": "2026-01-01T00:00:00Z", "count": 1,
        "vulnerabilities": [{"cveID": "CVE-2025-0009", "dateAdded": "2025-12-24"}],
    });
    let name = "known_exploited_vulnerabilities.json";
    desk.write(name, catalogue.to_string())
}

/// An archive of one file, with the checksum in both places.
fn zip(name: &str, contents: &[u8]) -> Result<Vec<u8>> {
    let mut archive = crate::inspect::hostile::zip(name, contents)?;
    let mut checksum = Crc::new();
    checksum.update(contents);
    let checksum = checksum.sum().to_le_bytes();
    let mut headers = archive.windows(4).enumerate();
    let central = headers.find(|(_, bytes)| bytes == b"PK\x01\x02");
    let central = central.context("a central header")?.0;
    for at in [14, central + 16] {
        archive[at..at + 4].copy_from_slice(&checksum);
    }
    Ok(archive)
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A Registry `hub`, and a discovery of it that waits for its turn.
fn schedules(desk: &mut Desk) -> Result<()> {
    serve(desk, "--scanning=off")?;
    let about = json!({"name": "hub", "namespace": "default"});
    let spec = json!({
        "uri": "registry.example", "catalogType": "NoCatalog", "repositories": [{"name": "team/app"}],
    });
    let registry = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": about, "spec": spec,
    });
    let discovery = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "RegistryDiscovery",
        "metadata": {"name": "hub-1742868000", "namespace": "default"},
        "spec": {"registry": "hub"},
    });
    create(desk, &[registry, discovery])
}

/// A report of a Deployment.
fn workloads(desk: &mut Desk) -> Result<()> {
    serve(desk, "--scanning=off")?;
    create(desk, &[namespace("web")])?;
    report(desk, "web", "deployment", "shop", &[("main", "1")])
}

/// What was found in the images that some workloads run: 14 containers, of which two wait.
fn why(desk: &mut Desk) -> Result<()> {
    serve(desk, "--scanning=off --audit=off --config-audit=off")?;
    let finding = |cve: &str, package: &str, installed: &str, fixed: &[&str], severity: &str| {
        json!({
            "cve": cve, "packageName": package, "installedVersion": installed,
            "fixedVersions": fixed, "severity": severity,
            "purl": format!("pkg:{}/{package}@{installed}", if package == "lodash" { "npm" } else { "deb/debian" }),
        })
    };
    let mut harmless = finding("CVE-2024-0001", "openssl", "1.1.1", &[], "CRITICAL");
    harmless["suppressed"] = json!(true);
    let found = [
        finding("CVE-2024-0001", "openssl", "1.1.1", &["1.1.2"], "CRITICAL"),
        finding("CVE-2024-0002", "openssl", "1.1.1", &["1.1.10"], "HIGH"),
        finding("CVE-2024-0003", "bash", "5.0", &[], "LOW"),
        finding("CVE-2024-0004", "lodash", "4.0.0", &["4.17.21"], "MEDIUM"),
    ];
    let mut objects = vec![namespace("shop"), namespace("bank"), namespace("artifacts")];
    for (tag, findings) in [
        ("1", &found[..]),
        ("2", std::slice::from_ref(&harmless)),
        ("old", &found[..1]),
        ("clean", &[]),
    ] {
        let image = json!({
            "registry": "hub", "registryURI": "registry.example", "repository": "app", "tag": tag,
            "digest": format!("sha256:{tag}"), "platform": {"os": "linux", "architecture": "amd64"},
        });
        let about = json!({"name": format!("app-{tag}"), "namespace": "artifacts"});
        let results = json!([{"class": "os-pkgs", "type": "dpkg", "vulnerabilities": findings}]);
        objects.push(json!({
            "apiVersion": STORAGE, "kind": "Image", "metadata": about, "imageMetadata": image,
        }));
        objects.push(json!({
            "apiVersion": STORAGE, "kind": "VulnerabilityReport", "metadata": about,
            "imageMetadata": image, "report": {"results": results},
        }));
    }
    create(desk, &objects)?;
    report(desk, "bank", "statefulset", "web", &[("main", "1")])?;
    report(
        desk,
        "shop",
        "deployment",
        "web",
        &[("main", "1"), ("side", "2")],
    )?;
    let clean = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, "clean"));
    report(desk, "bank", "deployment", "clean", &clean)?;
    let waiting = [("a", "later"), ("b", "later")];
    report(desk, "bank", "deployment", "waiting", &waiting)
}

/// A workload whose containers run these tags, with its report, which the workload owns.
fn report(
    desk: &Desk,
    namespace: &str,
    kind: &str,
    name: &str,
    containers: &[(&str, &str)],
) -> Result<()> {
    let pretty = match kind {
        "deployment" => "Deployment",
        _ => "StatefulSet",
    };
    let labels = json!({"app": name});
    let running = containers
        .iter()
        .map(|(name, tag)| json!({"name": name, "image": format!("registry.example/app:{tag}")}));
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": pretty,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": running.collect::<Value>(),
            }},
        },
    });
    if kind == "statefulset" {
        workload["spec"]["serviceName"] = json!(name);
    }
    create(desk, &[workload])?;
    let get = format!("kubectl get {kind} {name} -n {namespace} -o jsonpath='{{.metadata.uid}}'");
    let owner = json!({
        "apiVersion": "apps/v1", "kind": pretty, "name": name, "uid": desk.prepare(&get)?,
    });
    let listed = containers.iter().map(|(name, tag)| {
        json!({"name": name, "imageRef": {
            "registry": "hub", "namespace": "artifacts", "repository": "app", "tag": tag,
        }})
    });
    create(
        desk,
        &[json!({
            "apiVersion": STORAGE, "kind": "WorkloadScanReport",
            "metadata": {
                "name": format!("{kind}-{name}"), "namespace": namespace, "ownerReferences": [owner],
            },
            "spec": {"containers": listed.collect::<Value>()},
        })],
    )
}
