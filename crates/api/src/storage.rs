//! `storage.sbomscanner.kubewarden.io`: what was found. Images, what is in them, what is wrong with
//! that, and which workload has to be mended. Large, many and short-lived, so we serve them
//! ourselves and spare etcd.

use crate::{finding, history, image, link, scanner, validate};
use muster_kind::schema::{Schema, any_object, list, object, string};
use muster_kind::{Column, Kind};
use serde_json::Value;

/// The API group.
pub const GROUP: &str = "storage.sbomscanner.kubewarden.io";
/// The served version.
pub const VERSION: &str = "v1alpha1";

/// The most containers that a WorkloadScanReport can have.
pub const MAX_CONTAINERS: usize = 500;

/// An SBOM of a large image is tens of megabytes.
const LARGE: usize = 100 * 1024 * 1024;

/// The kinds of this group.
pub fn kinds() -> Vec<Kind> {
    vec![
        image(),
        sbom(),
        vulnerability_report(),
        workload_scan_report(),
        history::kind(),
    ]
}

fn kind(name: &str) -> Kind {
    Kind::namespaced(GROUP, VERSION, name)
        .category(crate::CATEGORY)
        .category(scanner::CATEGORY)
        .validated_by(validate::storage::image_metadata)
}

fn image() -> Kind {
    let layer = object()
        .describe("One layer of the image.")
        .field(
            "command",
            string().describe("The build step that made the layer, in base64."),
        )
        .field(
            "digest",
            string().describe("Digest of the layer as the registry keeps it."),
        )
        .field(
            "diffID",
            string().describe("Digest of the layer once decompressed."),
        );
    let workload_report = object()
        .describe("A workload's report that counts this image.")
        .required("name", string().describe("Name of the WorkloadScanReport."))
        .required(
            "namespace",
            string().describe("Namespace of the WorkloadScanReport."),
        );
    let status = object().describe("Where the image is used.").field(
        "workloadScanReports",
        list(workload_report)
            .keyed_by(["namespace", "name"])
            .describe("Reports of the workloads that run the image."),
    );
    let kind = kind("Image")
        .short("img")
        .describe("An image found in a registry.")
        .schema(
            object()
                .field("imageMetadata", image::metadata())
                .field(
                    "layers",
                    list(layer).describe("Layers of the image, lowest first."),
                )
                .field("status", status),
        );
    image::about_an_image(kind)
        .linked_by(link::answered)
        .column(Column::string("Digest", ".imageMetadata.digest").wide())
        .column(Column::age())
}

fn sbom() -> Kind {
    let kind = kind("SBOM").describe("What an image consists of.").schema(
        object().field("imageMetadata", image::metadata()).field(
            "spdx",
            any_object().describe("The bill of materials, SPDX 2.3 in JSON."),
        ),
    );
    image::about_an_image(kind)
        .opaque(".spdx")
        .size_limit(LARGE)
        .column(Column::age())
}

fn vulnerability_report() -> Kind {
    let kind = kind("VulnerabilityReport")
        .short("vr")
        .describe("What is wrong with an image.")
        .schema(
            object()
                .field("imageMetadata", image::metadata())
                .field("report", finding::report()),
        );
    finding::severity_columns(image::about_an_image(kind), ".report.summary")
        .column(Column::date("Scanned", ".report.scannedAt").wide())
        .linked_by(link::answered)
        .opaque(".report.results")
        .size_limit(LARGE)
        .column(Column::age())
}

fn workload_scan_report() -> Kind {
    let kind = Kind::namespaced(GROUP, VERSION, "WorkloadScanReport")
        .short("wsr")
        .category(crate::CATEGORY)
        .category(scanner::CATEGORY)
        .describe("What is wrong with the images of a workload. Only `spec` is ever stored.")
        .schema(
            object()
                .required("spec", workload_spec())
                .field("status", workload_status())
                .field(
                    "summary",
                    finding::summary("Findings of all containers by severity."),
                )
                .field("containers", workload_containers()),
        )
        .linked_by(link::asked)
        .computed("status")
        .computed("summary")
        .computed("containers")
        // Replacing what was read sends the findings back, which are skipped. What is stored has the
        // ordinary limit.
        .size_limit(LARGE)
        .column(Column::computed("Kind", "string", |report| {
            owner(report, "kind")
        }))
        .column(Column::computed("Workload", "string", |report| {
            owner(report, "name")
        }))
        .column(
            Column::computed("Containers", "string", containers)
                .describe("How many containers' images are scanned, of how many."),
        );
    // A count is only shown of containers that are scanned.
    kind.column(Column::computed("Critical", "string", |report| {
        count(report, "critical")
    }))
    .column(Column::computed("High", "string", |report| {
        count(report, "high")
    }))
    .column(Column::computed("Medium", "string", |report| {
        count(report, "medium")
    }))
    .column(Column::computed("Low", "string", |report| {
        count(report, "low")
    }))
    .column(Column::computed("Unknown", "string", |report| {
        count(report, "unknown")
    }))
    .column(Column::computed("Suppressed", "string", |report| count(report, "suppressed")).wide())
    .column(
        Column::computed("Images", "string", images)
            .describe("What the containers run.")
            .wide(),
    )
    .column(Column::age())
}

fn owner(report: &Value, field: &str) -> Value {
    let path = format!("/metadata/ownerReferences/0/{field}");
    report.pointer(&path).cloned().unwrap_or_default()
}

/// The elements of a list in an object, if it is there.
fn elements<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// How many containers are scanned, of how many.
fn containers(report: &Value) -> Value {
    let (scanned, all) = scanned(report);
    format!("{scanned}/{all}").into()
}

fn scanned(report: &Value) -> (usize, usize) {
    let scanned = elements(report, "/status/containerStatuses")
        .filter(|status| status["scanStatus"] == "ScanComplete");
    (
        scanned.count(),
        elements(report, "/spec/containers").count(),
    )
}

/// The findings of a severity: a dash instead of a zero while containers are not scanned.
fn count(report: &Value, severity: &str) -> Value {
    let (scanned, all) = scanned(report);
    let count = report["summary"][severity].as_i64().unwrap_or_default();
    let is_known = scanned > 0 && scanned >= all;
    match count {
        0 if !is_known => "-".into(),
        count => count.to_string().into(),
    }
}

/// The images of the containers, each once; of many only the first.
fn images(report: &Value) -> Value {
    const MOST: usize = 3;
    const DIGITS: usize = "sha256:".len() + 12;
    let mut shown: Vec<String> = Vec::new();
    for container in elements(report, "/spec/containers") {
        let part = |name: &str| container["imageRef"][name].as_str().unwrap_or_default();
        let selector = match (part("tag"), part("digest")) {
            ("", "") => String::new(),
            ("", digest) => format!("@{}", digest.get(..DIGITS).unwrap_or(digest)),
            (tag, _) => format!(":{tag}"),
        };
        let image = format!("{}{selector}", part("repository"));
        if !shown.contains(&image) {
            shown.push(image);
        }
    }
    let more = shown.len().saturating_sub(MOST);
    shown.truncate(MOST);
    if more > 0 {
        shown.push(format!("+{more}"));
    }
    shown.join(",").into()
}

/// While a workload changes its image, its old and its new pods run side by side and a container
/// stands here once for each image. That is why these lists are not keyed by the container's name.
fn workload_spec() -> Schema {
    let reference = object()
        .describe("Which image the container runs.")
        .required(
            "registry",
            string()
                .length(1, 253)
                .describe("Name of the Registry object."),
        )
        .required(
            "namespace",
            string()
                .length(1, 63)
                .describe("Namespace of the Registry object."),
        )
        .required(
            "repository",
            string()
                .length(1, 255)
                .describe("Repository, without the host."),
        )
        .field("tag", string().describe("Tag that the pod asked for."))
        .field(
            "digest",
            string().describe("Digest that really runs, or that the pod asked for."),
        );
    let container = object()
        .describe("A container of the workload.")
        .required("name", container_name())
        .required("imageRef", reference)
        .field(
            "message",
            string().describe("Why the image cannot be scanned, if that is known."),
        );
    object()
        .describe("The workload's containers and their images.")
        .required(
            "containers",
            list(container)
                .at_most(MAX_CONTAINERS)
                .describe("Containers, init containers among them. At most 500."),
        )
}

fn container_name() -> Schema {
    string()
        .length(1, 253)
        .describe("Name of the container in the pod.")
}

fn workload_status() -> Schema {
    let container = object()
        .describe("How far one container's image is scanned.")
        .required("name", container_name())
        .required(
            "scanStatus",
            string()
                .one_of(["WaitingForScan", "ScanInProgress", "ScanComplete"])
                .describe("No image known yet, some platforms missing, or all there."),
        )
        .field(
            "message",
            string().describe("Why the image cannot be scanned, if it cannot."),
        );
    object()
        .describe("How far the workload is scanned; computed when read.")
        .field(
            "containerStatuses",
            list(container).describe("One entry for each container of the spec."),
        )
}

fn workload_containers() -> Schema {
    let report = object()
        .describe("The findings of one platform of the image.")
        .field(
            "name",
            string().describe("Name of the VulnerabilityReport."),
        )
        .field(
            "namespace",
            string().describe("Namespace of the VulnerabilityReport."),
        )
        .field("imageMetadata", image::metadata())
        .field("report", finding::report());
    let container = object()
        .describe("The findings of one container.")
        .required("name", container_name())
        .field(
            "vulnerabilityReports",
            list(report).describe("Findings by platform."),
        );
    list(container).describe("Findings of each container of the spec; computed when read.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_of_unknown_severity_are_shown_without_asking() {
        for kind in [vulnerability_report(), workload_scan_report()] {
            let unknown = kind.columns.iter().find(|column| column.name == "Unknown");
            assert_eq!(
                unknown.map(|column| column.priority),
                Some(0),
                "{}",
                kind.kind
            );
        }
    }

    #[test]
    fn a_workload_report_is_shown_with_its_owner_its_containers_and_their_images() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let container = |reference: Value| json!({"name": "a", "imageRef": reference});
        let mut report = json!({
            "metadata": {"ownerReferences": [{"kind": "Deployment", "name": "nginx"}]},
            "spec": {"containers": [
                container(json!({"repository": "library/nginx", "tag": "1", "digest": digest})),
                container(json!({"repository": "team/app", "digest": digest})),
                container(json!({"repository": "library/nginx", "tag": "1"})),
            ]},
            "status": {"containerStatuses": [
                {"scanStatus": "ScanComplete"}, {"scanStatus": "ScanInProgress"},
                {"scanStatus": "ScanComplete"},
            ]},
        });
        assert_eq!(
            images(&report),
            "library/nginx:1,team/app@sha256:0123456789ab"
        );
        assert_eq!(owner(&report, "kind"), "Deployment");
        assert_eq!(owner(&report, "name"), "nginx");
        assert_eq!(containers(&report), "2/3");
        assert_eq!(
            (owner(&json!({}), "kind"), containers(&json!({}))),
            (Value::Null, json!("0/0"))
        );
        for (statuses, critical, expected) in [
            (&["ScanComplete", "ScanComplete"][..], 0, "0"),
            (&["ScanComplete", "ScanComplete"], 3, "3"),
            (&["ScanComplete", "ScanInProgress"], 0, "-"),
            (&["ScanComplete", "ScanInProgress"], 3, "3"),
            (&["WaitingForScan", "WaitingForScan"], 0, "-"),
            (&[], 0, "-"),
        ] {
            let status = |status: &&str| json!({"scanStatus": status});
            let report = json!({
                "spec": {"containers": statuses.iter().map(|_| json!({})).collect::<Vec<_>>()},
                "status": {"containerStatuses": statuses.iter().map(status).collect::<Vec<_>>()},
                "summary": {"critical": critical},
            });
            assert_eq!(count(&report, "critical"), expected, "{statuses:?}");
        }
        let many = (0..5).map(|tag| container(json!({"repository": "a", "tag": tag.to_string()})));
        report["spec"]["containers"] = many.collect();
        assert_eq!(images(&report), "a:0,a:1,a:2,+2");
    }
}
