//! Red Hat's rules: products, processors, modules, and several fixes of one vulnerability.

use super::{bill, lines};
use crate::trivy::{advisory, database, source};
use muster_scan::matching::find;
use muster_scan::os::{Build, Family, Os};
use muster_scan::package::{Detector, Package};
use muster_scan::sbom::Bill;
use muster_testkit::bolt::Put;
use serde_json::{Value, json};

fn products(index: &str, name: &str, numbers: &[u32]) -> Put {
    Put::text(&["Red Hat CPE", index], name, json!(numbers).to_string())
}

fn package(name: &str, version: &str, modularity: Option<&str>) -> Package {
    Package {
        architecture: Some("x86_64".into()),
        vendor: Some("Red Hat, Inc.".into()),
        modularity: modularity.map(Into::into),
        ..Package::new(name, version)
    }
}

fn puts() -> Vec<Put> {
    let red_hat = |package: &str, id: &str, value: Value| advisory("Red Hat", package, id, value);
    let cve = |id: &str, severity: u32| json!({"ID": id, "Severity": severity});
    vec![
        source("Red Hat", "redhat"),
        products("repository", "rhel-8-for-x86_64-baseos-rpms", &[1, 2]),
        products("repository", "rhel-8-for-x86_64-appstream-rpms", &[3]),
        products("repository", "rhel-9-for-x86_64-baseos-rpms", &[4]),
        products("nvr", "ubi8-container-8.10-1-x86_64", &[7]),
        // One errata with two vulnerabilities, in several products and for some processors.
        red_hat(
            "tool",
            "RHSA-2024:0001",
            json!({"Entries": [
                {"FixedVersion": "0:2-1.el8", "Cves": [cve("CVE-2024-1", 3), cve("CVE-2024-2", 0)], "Affected": [2], "Arches": ["x86_64", "aarch64"]},
                {"FixedVersion": "0:7-1.el9", "Cves": [cve("CVE-2024-1", 3)], "Affected": [4]},
            ]}),
        ),
        // Fixed again, further up.
        red_hat(
            "tool",
            "RHSA-2024:0002",
            json!({"Entries": [
                {"FixedVersion": "0:3-1.el8", "Cves": [cve("CVE-2024-1", 2)], "Affected": [1]},
                {"FixedVersion": "0:9-1.el8", "Cves": [cve("CVE-2024-1", 2)], "Affected": [1], "Arches": ["s390x"]},
            ]}),
        ),
        red_hat(
            "tool",
            "CVE-2024-3",
            json!({"Entries": [{"Cves": [{"Severity": 1}], "Affected": [3], "Status": 5}]}),
        ),
        red_hat(
            "tool",
            "CVE-2024-4",
            json!({"Entries": [{"Cves": [{"Severity": 4}], "Affected": [4], "Status": 7}]}),
        ),
        red_hat(
            "tool",
            "CVE-2024-5",
            json!({"Entries": [{"Cves": [{"Severity": 2}], "Affected": [7], "Status": 4}]}),
        ),
        // Unfixed in one product and fixed in another that the image has, too: the fix counts.
        red_hat(
            "tool",
            "CVE-2024-6",
            json!({"Entries": [{"Cves": [{"Severity": 2}], "Affected": [1], "Status": 2}]}),
        ),
        red_hat(
            "tool",
            "RHSA-2024:0003",
            json!({"Entries": [
            {"FixedVersion": "0:1-1.el8", "Cves": [cve("CVE-2024-6", 2)], "Affected": [3]}]}),
        ),
        red_hat(
            "nodejs:18::npm",
            "RHSA-2024:0004",
            json!({"Entries": [
            {"FixedVersion": "1:9-1.module+el8", "Cves": [cve("CVE-2024-7", 3)], "Affected": [3]}]}),
        ),
        Put::text(
            &["vulnerability"],
            "CVE-2024-1",
            json!({"Severity": "LOW", "VendorSeverity": {"redhat": 1, "nvd": 4}}).to_string(),
        ),
    ]
}

fn image(os: Os, package: Package) -> Bill {
    bill(Some(os), Detector::Rpm, package)
}

#[test]
fn advisories_are_those_of_the_products_that_an_image_is_made_of() {
    let (_directory, database) = database(&puts());
    let built = |sets: &[&str], nvr: Option<&str>| Os {
        build: Some(Build {
            content_sets: sets.iter().map(|set| (*set).into()).collect(),
            nvr: nvr.map(Into::into),
            architecture: nvr.map(|_| "x86_64".into()),
        }),
        ..Os::new(Family::RedHat, "8.10")
    };
    let eight = vec![
        "CVE-2024-1 [3-1.el8] fixed MEDIUM redhat",
        "CVE-2024-2 [2-1.el8] fixed UNKNOWN redhat",
        "CVE-2024-3 [] will_not_fix LOW redhat",
    ];
    for (os, expected) in [
        (Os::new(Family::RedHat, "8.10"), eight.clone()),
        (Os::new(Family::CentOs, "8.4.2105"), eight.clone()),
        (
            Os::new(Family::RedHat, "9.4"),
            vec![
                "CVE-2024-1 [7-1.el9] fixed HIGH redhat",
                "CVE-2024-4 [] end_of_life CRITICAL redhat",
            ],
        ),
        (
            built(&["rhel-8-for-x86_64-appstream-rpms__8"], None),
            vec!["CVE-2024-3 [] will_not_fix LOW redhat"],
        ),
        (
            built(
                &["rhel-8-for-x86_64-appstream-rpms"],
                Some("ubi8-container-8.10-1"),
            ),
            vec![
                "CVE-2024-3 [] will_not_fix LOW redhat",
                "CVE-2024-5 [] under_investigation MEDIUM redhat",
            ],
        ),
    ] {
        let found = find(
            &image(os.clone(), package("tool", "1-1.el8", None)),
            &database,
        )
        .unwrap();
        assert_eq!(lines(&found), expected, "{os}");
        assert!(found.unmatched.is_empty());
    }
    // Every fix for this processor is installed.
    let found = find(
        &image(
            Os::new(Family::RedHat, "8.10"),
            package("tool", "3-1.el8", None),
        ),
        &database,
    )
    .unwrap();
    assert_eq!(lines(&found), ["CVE-2024-3 [] will_not_fix LOW redhat"]);
}

#[test]
fn modules_have_names_of_their_own_and_processors_count() {
    let (_directory, database) = database(&puts());
    let os = || Os::new(Family::RedHat, "8.10");
    let label = Some("nodejs:18:8090020240101:rhel8");
    for (package, expected) in [
        (package("npm", "1:8-1", label), vec!["CVE-2024-7"]),
        (package("npm", "1:8-1", Some("nodejs:20:809:rhel8")), vec![]),
        (package("npm", "1:8-1", None), vec![]),
    ] {
        let found = find(&image(os(), package), &database).unwrap();
        let found: Vec<&str> = found.findings.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(found, expected);
    }
    for (architecture, expected) in [
        ("x86_64", "3-1.el8"),
        ("s390x", "9-1.el8"),
        ("noarch", "9-1.el8"),
    ] {
        let mut package = package("tool", "1-1.el8", None);
        package.architecture = Some(architecture.into());
        let found = find(&image(os(), package), &database).unwrap();
        assert_eq!(found.findings[0].fixed_text(), expected, "{architecture}");
    }
}

#[test]
fn an_image_of_products_that_nobody_knows_is_noted() {
    let (_directory, database) = database(&puts());
    for os in [
        Os::new(Family::RedHat, "7.9"),
        Os::new(Family::CentOs, "stream 9"),
    ] {
        let found = find(&image(os, package("tool", "1-1", None)), &database).unwrap();
        assert!(found.findings.is_empty());
        assert_eq!(found.unmatched.len(), 1);
    }
}
