//! Packages that were not matched are counted and named, with the reason.

use super::{bill, from};
use crate::osv::{affected, compile, fixed, record};
use crate::trivy::{advisory, database};
use muster_scan::matching::{Reason, find};
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package};
use muster_scan::report::Report;
use muster_scan::sbom::{Bill, cyclonedx, spdx};
use muster_scan::vulnerability::osv::OsvIndex;
use muster_scan::vulnerability::{Combined, Database};
use muster_testkit::bolt::Put;
use serde_json::json;
use std::sync::Arc;

/// Reason, type, number, whether a data source exists, and the first package.
fn told(bill: &Bill, database: &dyn Database) -> Vec<(Reason, String, u64, bool, String)> {
    let found = find(bill, database).unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    let told = found.unmatched.into_iter().map(|one| {
        let first = one.packages.first();
        let first = first.map(|package| {
            let words = [&package.name, &package.version, &package.advisory];
            words.map(String::as_str).join(" ").trim().to_owned()
        });
        let first = first.unwrap_or_default();
        (one.reason, one.kind, one.count, one.matchable, first)
    });
    told.collect()
}

fn puts() -> Vec<Put> {
    let ranges = |text: &str| json!({"VulnerableVersions": [text]});
    vec![
        advisory(
            "debian 12",
            "openssl",
            "CVE-1",
            json!({"FixedVersion": "3"}),
        ),
        advisory("debian 12", "zlib", "CVE-2", json!({"FixedVersion": "no-"})),
        advisory(
            "debian 12",
            "xz",
            "CVE-3",
            json!({"FixedVersion": "3", "AffectedVersion": "no-"}),
        ),
        advisory("npm::A", "lodash", "CVE-4", ranges("< 4.17.21")),
        advisory("npm::A", "broken", "CVE-5", ranges("<> 1.0, ?")),
        advisory("npm::A", "bound", "CVE-6", ranges(">= 2.0.0, < latest")),
        advisory(
            "npm::A",
            "unsafe",
            "CVE-7",
            json!({"VulnerableVersions": ["< latest"], "PatchedVersions": ["> 1.0.0"]}),
        ),
    ]
}

fn debian() -> Option<Os> {
    Some(Os::new(Family::Debian, "12.1"))
}

fn npm(name: &str, version: &str) -> Bill {
    bill(None, Detector::NodePackage, Package::new(name, version))
}

fn deb(os: Option<Os>, source: &str, version: &str) -> Bill {
    bill(os, Detector::Dpkg, from(source, version))
}

#[test]
fn a_package_that_was_not_matched_is_counted_with_its_reason() {
    use Reason::{InvalidRange, InvalidVersion, NoData, NoRules};
    let (_directory, database) = database(&puts());
    let release = |family, version: &str| Some(Os::new(family, version));
    let other = || Family::Other("void".into());
    let red_hat = Package {
        vendor: Some("Red Hat, Inc.".into()),
        ..Package::new("a", "1-1")
    };
    let python = bill(None, Detector::PythonPackage, Package::new("django", "1"));
    for (bill, expected) in [
        // The data has nothing for the distribution or the ecosystem.
        (
            deb(release(Family::Debian, "11.2"), "openssl", "1"),
            Some((NoData, "deb", true, "libopenssl 1")),
        ),
        (python, Some((NoData, "pypi", true, "django 1"))),
        (
            bill(release(Family::RedHat, "9.4"), Detector::Rpm, red_hat),
            Some((NoData, "rpm", true, "a 1-1")),
        ),
        // There are no rules.
        (
            deb(release(other(), "1"), "openssl", "1"),
            Some((NoRules, "deb", false, "libopenssl 1")),
        ),
        (
            deb(release(Family::Debian, "trixie/sid"), "openssl", "1"),
            Some((NoRules, "deb", true, "libopenssl 1")),
        ),
        (
            deb(None, "openssl", "1"),
            Some((NoRules, "deb", true, "libopenssl 1")),
        ),
        // The version cannot be parsed.
        (
            deb(debian(), "openssl", "1 2"),
            Some((InvalidVersion, "deb", true, "libopenssl 1 2")),
        ),
        (
            npm("lodash", "latest"),
            Some((InvalidVersion, "npm", true, "lodash latest")),
        ),
        (
            npm("lodash", ""),
            Some((InvalidVersion, "npm", true, "lodash")),
        ),
        // The range of an advisory cannot be parsed.
        (
            deb(debian(), "zlib", "1"),
            Some((InvalidRange, "deb", true, "libzlib 1 CVE-2")),
        ),
        (
            deb(debian(), "xz", "1"),
            Some((InvalidRange, "deb", true, "libxz 1 CVE-3")),
        ),
        (
            npm("broken", "1.0.0"),
            Some((InvalidRange, "npm", true, "broken 1.0.0 CVE-5")),
        ),
        (
            npm("bound", "2.0.0"),
            Some((InvalidRange, "npm", true, "bound 2.0.0 CVE-6")),
        ),
        (
            npm("unsafe", "1.0.0"),
            Some((InvalidRange, "npm", true, "unsafe 1.0.0 CVE-7")),
        ),
        // These were matched: what cannot be parsed does not matter for them.
        (deb(debian(), "openssl", "3"), None),
        (deb(debian(), "quiet", "1 2"), None),
        (deb(debian(), "xz", "4"), None),
        (npm("lodash", "4.17.21"), None),
        (npm("quiet", "latest"), None),
        (npm("bound", "1.0.0"), None),
        (npm("unsafe", "1.0.1"), None),
    ] {
        let expected = expected
            .map(|(reason, kind, matchable, first)| {
                (reason, kind.to_owned(), 1, matchable, first.to_owned())
            })
            .into_iter()
            .collect::<Vec<_>>();
        let package = &bill.components[0].package;
        assert_eq!(
            told(&bill, &database),
            expected,
            "{package:?} {:?}",
            bill.os
        );
    }
}

#[test]
fn a_whole_image_without_data_is_one_group() {
    let (_directory, database) = database(&puts());
    let mut image = deb(Some(Os::new(Family::Debian, "11")), "a", "1");
    for number in 0..13 {
        let more = deb(None, &format!("a{number}"), "1");
        image.components.extend(more.components);
    }
    let found = find(&image, &database).unwrap();
    let sentences: Vec<_> = found.unmatched.iter().map(|one| one.sentence()).collect();
    let expected =
        "14 deb packages were not matched: the vulnerability data has nothing for debian 11";
    assert_eq!(sentences, [expected]);
    let report = Report::new(&image, &found, database.metadata(), None);
    let written = serde_json::to_value(&report).unwrap();
    assert_eq!(written["unmatched"][0]["reason"], "NoData");
    assert_eq!(written["unmatched"][0]["count"], 14);
    assert_eq!(written["unmatched"][0]["packages"][0]["name"], "liba");
    assert_eq!(written["notes"], json!([expected]));
    assert_eq!(serde_json::from_value::<Report>(written).unwrap(), report);
}

#[test]
fn a_report_of_an_older_version_does_not_say_what_was_matched() {
    let old = json!({"summary": {}, "results": []});
    let report: Report = serde_json::from_value(old).unwrap();
    assert_eq!(report.unmatched, None);
    let (_directory, database) = database(&puts());
    let matched = npm("lodash", "4.17.21");
    let found = find(&matched, &database).unwrap();
    let report = Report::new(&matched, &found, database.metadata(), None);
    let written = serde_json::to_value(&report).unwrap();
    assert_eq!(written["unmatched"], json!([]));
}

#[test]
fn osv_records_and_several_databases_say_which_streams_they_have() {
    let index = |ecosystem: &str, name: &str| {
        let records = [record(
            "X-1",
            json!({"aliases": ["CVE-1"], "affected": [affected(ecosystem, name, fixed("2.0.0"))]}),
        )];
        OsvIndex::open(compile(&records).0).unwrap()
    };
    let python = || bill(None, Detector::PythonPackage, Package::new("django", "2.0"));
    let npm = npm("lodash", "2.0.0");
    let pip = index("PyPI", "django");
    assert_eq!(told(&npm, &pip)[0].0, Reason::NoData);
    assert!(told(&python(), &pip).is_empty());
    let both = Combined::new(vec![
        Arc::new(pip) as Arc<dyn Database>,
        Arc::new(index("npm", "lodash")),
    ]);
    assert!(told(&npm, &both).is_empty());
    assert!(told(&python(), &both).is_empty());
    // Extended support of Ubuntu comes on top of what the release has.
    let ubuntu = index("Ubuntu:18.04:LTS", "openssl");
    let extended = super::extended("18.04");
    assert!(told(&deb(Some(extended), "openssl", "3"), &ubuntu).is_empty());
}

#[test]
fn packages_of_a_document_whose_type_is_not_supported_are_counted() {
    let (_directory, database) = database(&puts());
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5",
        "metadata": {"component": {"type": "container", "name": "app", "purl": "pkg:oci/app@1"}},
        "components": [
            {"type": "library", "name": "lodash", "version": "4.17.21", "purl": "pkg:npm/lodash@4.17.21"},
            {"type": "library", "name": "plug", "version": "1.0", "purl": "pkg:hex/plug@1.0"},
            {"type": "library", "name": "numpy", "version": "2", "purl": "pkg:conda/numpy@2"},
            {"type": "library", "name": "mine", "version": "3"},
            {"type": "application", "name": "package-lock.json"},
            {"type": "operating-system", "name": "debian", "version": "12"},
            {"type": "container", "name": "base", "purl": "pkg:oci/base@1"},
        ],
    });
    let other = cyclonedx::read(document.to_string().as_bytes()).unwrap();
    let expected = [
        (
            Reason::NoRules,
            String::new(),
            1,
            false,
            "mine 3".to_owned(),
        ),
        (Reason::NoRules, "conda".into(), 1, false, "numpy 2".into()),
        (Reason::NoRules, "hex".into(), 1, true, "plug 1.0".into()),
    ];
    assert_eq!(told(&other, &database), expected);
    assert_eq!((other.components.len(), other.package_count()), (1, 4));
    let entry = |name: &str, purpose: &str, purl: &str| {
        let reference = json!({"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": purl});
        let references = match purl {
            "" => json!([]),
            _ => json!([reference]),
        };
        json!({"SPDXID": format!("SPDXRef-{name}"), "name": name, "versionInfo": "1",
            "primaryPackagePurpose": purpose, "externalRefs": references})
    };
    let document = json!({"spdxVersion": "SPDX-2.3", "packages": [
        entry("app", "CONTAINER", "pkg:oci/app@1"),
        entry("debian", "OPERATING-SYSTEM", ""),
        entry("package-lock.json", "APPLICATION", ""),
        entry("plug", "LIBRARY", "pkg:hex/plug@1"),
        entry("mine", "LIBRARY", ""),
    ]});
    let other = spdx::read(document.to_string().as_bytes()).unwrap();
    let kinds: Vec<_> = told(&other, &database)
        .into_iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(kinds, ["", "hex"]);
}

#[test]
fn types_of_a_hostile_document_are_bounded() {
    let library = |number: usize| json!({"type": "library", "name": "a", "version": "1", "purl": format!("pkg:t{number}/a@1")});
    let components: Vec<_> = (0..5000).map(library).collect();
    let document =
        json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": components});
    let bill = cyclonedx::read(document.to_string().as_bytes()).unwrap();
    assert_eq!(bill.package_count(), 5000);
    assert!(bill.unsupported.len() <= 33, "{}", bill.unsupported.len());
}
