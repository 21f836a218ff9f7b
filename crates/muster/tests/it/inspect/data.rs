//! Vulnerability data: fetched, brought along, described, and used.

use super::{Desk, expected, found, only, write_root};
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use muster_testkit::push::Pusher;
use muster_testkit::registry::Registry;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Command;

const CONFIG: &str = "application/vnd.aquasec.trivy.config.v1+json";
const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A database as it is published: an archive of its two files.
fn archive(directory: &Path) -> Result<Vec<u8>> {
    let tar = Command::new("tar")
        .args(["-cf", "-", "-C"])
        .arg(directory)
        .args(["trivy.db", "metadata.json"])
        .output()
        .context("cannot run tar")?;
    ensure!(tar.status.success(), "tar failed");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&tar.stdout)?;
    Ok(packed.finish()?)
}

async fn publish(registry: &Registry, archive: &[u8]) -> Result<String> {
    let pusher = Pusher::new(registry)?;
    let config = pusher.blob("trivy-db", CONFIG, b"{}").await?;
    let layer = pusher.blob("trivy-db", LAYER, archive).await?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": config.descriptor(), "layers": [layer.descriptor()],
    });
    let manifest = manifest.to_string();
    pusher
        .manifest("trivy-db", Some("2"), MANIFEST, manifest.as_bytes())
        .await?;
    Ok(format!("{}/trivy-db:2", registry.host()))
}

#[tokio::test]
async fn data_is_fetched_once_and_when_it_is_needed() -> Result<()> {
    let registry = Registry::start()?;
    let made = tempfile::tempdir()?;
    crate::scan::data(made.path())?;
    let repository = publish(&registry, &archive(made.path())?).await?;
    let desk = Desk::empty()?;
    write_root(&desk.path("work")?.join("root"))?;
    // A scan fetches it; the first repository does not answer, and that is said.
    let repositories = format!("127.0.0.1:1/gone:2,{repository}");
    let scan = [
        "scan",
        "-o",
        "json",
        "--db-repository",
        &repositories,
        "root",
    ];
    let one = only(&desk.told(&scan)?)?;
    assert_eq!(found(&one), expected());
    let revision = one["report"]["database"]["revision"].as_str();
    ensure!(
        revision.is_some_and(|text| text.starts_with("sha256:")),
        "{one}"
    );
    let update = ["db", "update", "--db-repository", &repository];
    let told = desk.told(&update)?;
    ensure!(told.contains("is the newest"), "{told}");
    let told = desk.told(&[&update[..], &["--force"]].concat())?;
    ensure!(told.contains("updated from"), "{told}");
    // Without a network it still scans, with what is there.
    let one = only(&desk.told(&["scan", "-o", "json", "--offline", "root"])?)?;
    assert_eq!(found(&one), expected());
    let (code, told) = desk.refused(&["db", "update", "--db-repository", "127.0.0.1:1/gone:2"])?;
    ensure!(code == Some(1) && told.contains("127.0.0.1:1"), "{told}");
    let info: Value = serde_json::from_str(&desk.told(&["db", "info", "-o", "json"])?)?;
    assert_eq!(info["parts"][0]["kind"], "trivy");
    assert_eq!(info["parts"][0]["summary"]["vulnerabilities"], 2);
    let table = desk.told(&["db", "info"])?;
    ensure!(
        table.contains("Trivy database") && table.contains("debian 12"),
        "{table}"
    );
    Ok(())
}

#[test]
fn data_is_brought_along_where_there_is_no_network() -> Result<()> {
    let desk = Desk::empty()?;
    let work = desk.path("work")?;
    write_root(&work.join("root"))?;
    let made = tempfile::tempdir()?;
    crate::scan::data(made.path())?;
    std::fs::write(work.join("db.tar.gz"), archive(made.path())?)?;
    // A record that is worse in no way but that it is exploited.
    let record = json!({
        "schema_version": "1.6.0", "id": "DEBIAN-CVE-2025-0009", "modified": "2026-01-01T00:00:00Z",
        "aliases": ["CVE-2025-0009"], "summary": "a flaw of zlib",
        "affected": [{
            "package": {"ecosystem": "Debian:12", "name": "zlib"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1:1.2.13.dfsg-2"}]}],
        }],
    });
    std::fs::create_dir_all(work.join("osv"))?;
    std::fs::write(work.join("osv/record.json"), record.to_string())?;
    let scores = "#model_version:v2025.03.14,score_date:2026-01-01T00:00:00+0000\n\
                  cve,epss,percentile\nCVE-2024-0001,0.5,0.97\nCVE-2025-0009,0.25,0.9\n";
    std::fs::write(work.join("epss.csv"), scores)?;
    let catalogue = json!({
        "title": "CISA Catalog of Known Exploited Vulnerabilities", "catalogVersion": "2026.01.01",
        "dateReleased": "2026-01-01T00:00:00Z", "count": 1,
        "vulnerabilities": [{"cveID": "CVE-2025-0009", "dateAdded": "2025-12-24"}],
    });
    std::fs::write(work.join("kev.json"), catalogue.to_string())?;
    desk.told(&["db", "import", "db.tar.gz", "osv", "epss.csv", "kev.json"])?;
    let one = only(&desk.told(&["scan", "-o", "json", "--offline", "root"])?)?;
    let findings = one["report"]["results"][0]["vulnerabilities"]
        .as_array()
        .context("findings")?;
    let names: Vec<&str> = findings
        .iter()
        .filter_map(|one| one["cve"].as_str())
        .collect();
    assert_eq!(names, ["CVE-2025-0009", "CVE-2024-0001"]);
    assert_eq!(findings[0]["knownExploited"], true);
    assert_eq!(findings[1]["epssScore"], 0.5);
    let table = desk.told(&["scan", "--offline", "root"])?;
    ensure!(table.contains("exploited 25.0%"), "{table}");
    let info: Value = serde_json::from_str(&desk.told(&["db", "info", "-o", "json"])?)?;
    let kinds: Vec<&str> = info["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["trivy", "osv", "epss", "kev"]);
    // Records of another origin are added, those of the same are replaced.
    let other = json!({"id": "GHSA-1", "modified": "0001-01-01T00:00:00Z", "affected": [{
        "package": {"ecosystem": "npm", "name": "left-pad"},
        "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
    }]});
    std::fs::write(work.join("mine.json"), other.to_string())?;
    let told = desk.told(&["db", "import", "mine.json"])?;
    ensure!(
        told.contains("mine.json: OSV records, 1 record\n"),
        "{told}"
    );
    ensure!(told.contains("kept: osv (1 record, imported "), "{told}");
    let told = desk.told(&["db", "import", "osv"])?;
    ensure!(
        told.contains("; replaced osv (1 record, imported "),
        "{told}"
    );
    ensure!(told.contains("kept: mine.json (1 record, "), "{told}");
    let table = desk.told(&["db", "info"])?;
    for line in [
        "mine.json (1 record",
        "made unknown",
        "osv (1 record",
        "made 2026-01-01",
    ] {
        ensure!(table.contains(line), "no {line} in {table}");
    }
    let table = desk.told(&["scan", "--offline", "root"])?;
    ensure!(table.contains("CVE-2025-0009"), "{table}");
    let told = desk.told(&["db", "import", "--replace", "mine.json"])?;
    ensure!(told.contains("; replaced mine.json ("), "{told}");
    ensure!(told.contains("removed: osv (1 record"), "{told}");
    std::fs::write(work.join("poem.txt"), "The fog comes on little cat feet.")?;
    let (code, told) = desk.refused(&["db", "import", "poem.txt"])?;
    ensure!(code == Some(1) && told.contains("poem.txt"), "{told}");
    Ok(())
}
