//! From a package to a report, with a database that the real Go library wrote.

use muster_scan::digest::Digest;
use muster_scan::image::Component;
use muster_scan::matching::find;
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::report::Report;
use muster_scan::sbom::{Bill, Subject, spdx};
use muster_scan::vulnerability::trivy_db::TrivyDatabase;
use muster_scan::vulnerability::{Database, Severity, Stream};
use muster_testkit::bolt::{Put, write};
use serde_json::{Value, json};

/// A database in the published schema.
pub(crate) fn database(puts: &[Put]) -> (tempfile::TempDir, TrivyDatabase) {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("trivy.db"), puts).unwrap();
    let metadata = json!({
        "Version": 2,
        "NextUpdate": "2026-01-03T00:00:00.123456789Z",
        "UpdatedAt": "2026-01-02T03:04:05.123456789Z",
    });
    std::fs::write(directory.path().join("metadata.json"), metadata.to_string()).unwrap();
    let database = TrivyDatabase::open(directory.path(), None).unwrap();
    (directory, database)
}

pub(crate) fn source(stream: &str, id: &str) -> Put {
    let value = json!({"ID": id, "Name": id, "URL": "https://example.org"});
    Put::text(&["data-source"], stream, value.to_string())
}

pub(crate) fn advisory(stream: &str, package: &str, id: &str, value: Value) -> Put {
    Put::text(&[stream, package], id, value.to_string())
}

fn debian() -> Vec<Put> {
    let vulnerability = json!({
        "Title": "openssl: a hole",
        "Description": "There is a hole.",
        "Severity": "HIGH",
        "CweIDs": ["CWE-787"],
        "VendorSeverity": {"nvd": 4, "debian": 1, "redhat": 2},
        "CVSS": {"nvd": {"V3Vector": "CVSS:3.1/AV:N", "V3Score": 9.8}},
        "References": ["https://example.org/1"],
        "PublishedDate": "2024-01-02T03:04:05.678Z",
        "LastModifiedDate": "2024-02-03T04:05:06Z",
    });
    let only_nvd = json!({"VendorSeverity": {"nvd": 3}, "References": null});
    vec![
        source("debian 12", "debian"),
        advisory(
            "debian 12",
            "openssl",
            "CVE-2024-0001",
            json!({"FixedVersion": "3.0.11-1~deb12u3"}),
        ),
        advisory(
            "debian 12",
            "openssl",
            "CVE-2023-0002",
            json!({"FixedVersion": "3.0.11-1~deb12u2"}),
        ),
        advisory(
            "debian 12",
            "openssl",
            "CVE-2022-0003",
            json!({"Status": 5, "Severity": 1}),
        ),
        advisory(
            "debian 12",
            "openssl",
            "CVE-2021-0004",
            json!({"Status": 1}),
        ),
        advisory(
            "debian 12",
            "openssl",
            "CVE-2020-0005",
            json!({"Status": 7, "VendorIDs": null}),
        ),
        advisory(
            "debian 11",
            "openssl",
            "CVE-2019-0006",
            json!({"FixedVersion": "9"}),
        ),
        advisory(
            "debian 12",
            "libssl3",
            "CVE-2018-0007",
            json!({"FixedVersion": "9"}),
        ),
        Put::text(
            &["vulnerability"],
            "CVE-2024-0001",
            vulnerability.to_string(),
        ),
        Put::text(&["vulnerability"], "CVE-2020-0005", only_nvd.to_string()),
    ]
}

fn bill() -> Bill {
    let package = Package {
        architecture: Some("amd64".into()),
        source: Some(Source {
            name: "openssl".into(),
            version: "3.0.11-1~deb12u2".into(),
        }),
        ..Package::new("libssl3", "3.0.11-1~deb12u2+b1")
    };
    Bill {
        subject: Subject {
            name: "app".into(),
            digest: Digest::of(b"app").to_string(),
            created: Some("2024-01-01T00:00:00Z".into()),
        },
        os: Some(Os::new(Family::Debian, "12.7")),
        components: vec![Component {
            detector: Detector::Dpkg,
            package,
            path: "var/lib/dpkg/status".into(),
            layer: Some(Digest::of(b"layer")),
        }],
        ..Bill::default()
    }
}

#[test]
fn the_published_schema_is_read() {
    let (_directory, database) = database(&debian());
    let metadata = database.metadata();
    assert_eq!(metadata.version, 2);
    assert_eq!(metadata.updated_at.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert_eq!(metadata.revision, "2026-01-02T03:04:05Z");
    assert_eq!(
        database.streams().unwrap(),
        [("debian 11".to_owned(), 1), ("debian 12".to_owned(), 2)]
    );
    let stream = Stream::Distribution("debian 12".into());
    let advisories = database.advisories(&stream, "openssl").unwrap();
    assert_eq!(advisories.len(), 5);
    assert!(
        advisories
            .iter()
            .all(|advisory| advisory.source.id == "debian")
    );
    assert_eq!(database.advisories(&stream, "nothing").unwrap(), []);
    assert_eq!(database.advisories(&stream, "").unwrap(), []);
    let vulnerability = database.vulnerability("CVE-2024-0001").unwrap().unwrap();
    assert_eq!(vulnerability.vendor_severity["nvd"], Severity::Critical);
    assert_eq!(database.vulnerability("CVE-1").unwrap(), None);
}

#[test]
fn debian_packages_are_matched_by_their_source_in_their_own_release() {
    let (_directory, database) = database(&debian());
    let found = find(&bill(), &database).unwrap();
    let found: Vec<_> = found
        .findings
        .iter()
        .map(|finding| {
            (
                finding.id.as_str(),
                finding.fixed_versions.join(" "),
                finding.status.name(),
                finding.severity.name(),
                finding.severity_source.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("CVE-2020-0005", String::new(), "end_of_life", "HIGH", "nvd"),
            (
                "CVE-2022-0003",
                String::new(),
                "will_not_fix",
                "LOW",
                "debian"
            ),
            (
                "CVE-2024-0001",
                "3.0.11-1~deb12u3".into(),
                "fixed",
                "LOW",
                "debian"
            ),
        ]
    );
}

#[test]
fn a_report_has_the_shape_of_the_kind() {
    let (_directory, database) = database(&debian());
    let bill = bill();
    let findings = find(&bill, &database).unwrap();
    let report = Report::new(
        &bill,
        &findings,
        database.metadata(),
        Some("2026-01-05T00:00:00Z"),
    );
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(
        value["summary"],
        json!({"critical": 0, "high": 1, "medium": 0, "low": 2, "unknown": 0, "suppressed": 0})
    );
    assert_eq!(value["scannedAt"], "2026-01-05T00:00:00Z");
    assert_eq!(value["database"]["updatedAt"], "2026-01-02T03:04:05Z");
    let result = &value["results"][0];
    assert_eq!(result["target"], "app (debian 12.7)");
    assert_eq!(
        (&result["class"], &result["type"]),
        (&json!("os-pkgs"), &json!("debian"))
    );
    assert_eq!(
        result["vulnerabilities"][2],
        json!({
            "cve": "CVE-2024-0001",
            "title": "openssl: a hole",
            "description": "There is a hole.",
            "packageName": "libssl3",
            "packagePath": "var/lib/dpkg/status",
            "purl": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2%2Bb1?arch=amd64&distro=debian-12.7&upstream=openssl%403.0.11-1~deb12u2",
            "installedVersion": "3.0.11-1~deb12u2+b1",
            "fixedVersions": ["3.0.11-1~deb12u3"],
            "status": "fixed",
            "diffID": Digest::of(b"layer").to_string(),
            "severity": "LOW",
            "severitySource": "debian",
            "references": ["https://example.org/1"],
            "cvss": {"nvd": {"v3vector": "CVSS:3.1/AV:N", "v3score": "9.8"}},
            "cwes": ["CWE-787"],
            "publishedAt": "2024-01-02T03:04:05Z",
            "modifiedAt": "2024-02-03T04:05:06Z",
            "suppressed": false,
        })
    );
}

#[test]
fn a_stored_bill_yields_the_same_report_as_the_image() {
    let (_directory, database) = database(&debian());
    let bill = bill();
    let stored = spdx::read(&spdx::write(&bill).unwrap()).unwrap();
    let report = |bill: &Bill| {
        let findings = find(bill, &database).unwrap();
        let report = Report::new(bill, &findings, database.metadata(), None);
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(report(&stored), report(&bill));
}

#[test]
fn a_database_that_lies_is_an_error_that_says_where() {
    let bad = [advisory(
        "debian 12",
        "openssl",
        "CVE-1",
        json!({"FixedVersion": 7}),
    )];
    let (_directory, database) = database(&bad);
    let error = find(&bill(), &database).unwrap_err().to_string();
    assert!(error.contains("CVE-1 of openssl in debian 12"), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let open = || {
        TrivyDatabase::open(directory.path(), None)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(open().contains("metadata.json"), "{}", open());
    std::fs::write(directory.path().join("metadata.json"), r#"{"Version": 3}"#).unwrap();
    assert_eq!(
        open(),
        "the vulnerability database has schema 3; only 2 is known"
    );
    std::fs::write(directory.path().join("metadata.json"), r#"{"Version": 2}"#).unwrap();
    std::fs::write(directory.path().join("trivy.db"), vec![0; 9000]).unwrap();
    assert!(open().contains("no valid meta page"), "{}", open());
}

#[test]
fn a_release_without_advisories_is_noted() {
    let (_directory, database) = database(&debian());
    let mut bill = bill();
    for (os, note) in [
        (None, "the distribution is not known"),
        (
            Some(Os::new(Family::Debian, "trixie/sid")),
            "advisories exist for no release called debian trixie/sid",
        ),
        (
            Some(Os::new(Family::Other("x".into()), "1")),
            "no data source publishes advisories for x 1",
        ),
    ] {
        bill.os = os;
        let found = find(&bill, &database).unwrap();
        assert!(found.findings.is_empty());
        let message = &found.unmatched[0].message;
        assert!(message.starts_with(note), "{message}");
    }
}

#[test]
fn packages_of_other_makers_are_noted_and_not_matched() {
    let (_directory, database) = database(&debian());
    let mut bill = bill();
    bill.components[0].package.vendor = Some("Docker <support@docker.com>".into());
    let found = find(&bill, &database).unwrap();
    assert!(found.findings.is_empty());
    assert_eq!(found.unmatched[0].packages[0].name, "libssl3");
    assert!(!found.unmatched[0].matchable);
}
