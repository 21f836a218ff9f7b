//! What the makers of an image say about it: a VEX hub with one document. It is about one image alone, so
//! that the same vulnerability stays a finding where nobody has said anything.

use serde_json::{Value, json};

/// Where the manifest of a hub is.
pub const MANIFEST: &str = "/.well-known/vex-repository.json";
const DOCUMENT: &str = "pkg/oci/metrics/vex.json";
const AUTHOR: &str = "Platform team";
const MADE: &str = "2026-11-01T00:00:00Z";

/// The image that is spoken of.
pub const REPOSITORY: &str = "platform/metrics";
/// What is said to do no harm there.
pub const HARMLESS: [&str; 3] = ["CVE-2023-39325", "CVE-2023-44487", "CVE-2023-45288"];

/// The manifest of the hub whose archive is at an address.
pub fn hub(archive: &str) -> Value {
    let version = json!({
        "spec_version": "0.1", "update_interval": "24h", "locations": [{"url": archive}],
    });
    json!({
        "name": "demo", "description": "What the makers of the demonstration's images say about them",
        "versions": [version],
    })
}

/// The files of the archive, for images of a registry's host.
pub fn files(host: &str) -> [(&'static str, Value); 2] {
    let name = REPOSITORY.rsplit('/').next().unwrap_or(REPOSITORY);
    let product = format!("pkg:oci/{name}?repository_url={host}/{REPOSITORY}");
    let index = json!({
        "updated_at": MADE, "packages": [{"id": product, "location": DOCUMENT}],
    });
    let statements: Vec<Value> = HARMLESS
        .iter()
        .map(|name| {
            json!({
                "vulnerability": {"name": name},
                "products": [{
                    "@id": product, "subcomponents": [{"@id": "pkg:golang/golang.org/x/net"}],
                }],
                "status": "not_affected",
                "justification": "vulnerable_code_not_in_execute_path",
                "impact_statement": "The program sends over HTTP/1.1 and serves nothing over HTTP/2.",
            })
        })
        .collect();
    let document = json!({
        "@context": "https://openvex.dev/ns/v0.2.0", "@id": "urn:muster:demo:metrics",
        "author": AUTHOR, "timestamp": MADE, "version": 1, "statements": statements,
    });
    [("index.json", index), (DOCUMENT, document)]
}
