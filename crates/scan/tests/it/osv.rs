//! OSV records of every ecosystem, compiled, read back and matched.

use muster_scan::image::Component;
use muster_scan::matching::find;
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::report::Report;
use muster_scan::sbom::Bill;
use muster_scan::vulnerability::osv::{Compiled, Compiler, OsvIndex, OsvSet};
use muster_scan::vulnerability::{Database, Severity, Status, Stream};
use serde_json::{Value, json};
use std::io::Cursor;

pub(crate) fn compile(records: &[Value]) -> (Vec<u8>, Compiled) {
    let mut compiler = Compiler::new().unwrap();
    for record in records {
        compiler.add(record.to_string().as_bytes()).unwrap();
    }
    let mut file = Cursor::new(Vec::new());
    let compiled = compiler.finish(&mut file).unwrap();
    (file.into_inner(), compiled)
}

fn index(records: &[Value]) -> OsvIndex {
    let index = OsvIndex::open(compile(records).0).unwrap();
    index.verify().unwrap();
    index
}

pub(crate) fn record(id: &str, more: Value) -> Value {
    let mut record = json!({
        "schema_version": "1.7.0", "id": id, "modified": "2026-01-02T03:04:05.678Z",
        "published": "2025-12-01T00:00:00Z", "summary": format!("{id} in a line"),
        "details": format!("{id} in full"),
    });
    for (key, value) in more.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

pub(crate) fn affected(ecosystem: &str, name: &str, events: Value) -> Value {
    let kind = if ecosystem == "npm" {
        "SEMVER"
    } else {
        "ECOSYSTEM"
    };
    json!({"package": {"ecosystem": ecosystem, "name": name},
           "ranges": [{"type": kind, "events": events}]})
}

pub(crate) fn fixed(version: &str) -> Value {
    json!([{"introduced": "0"}, {"fixed": version}])
}

fn bill(os: Option<Os>, detector: Detector, package: Package) -> Bill {
    Bill {
        os,
        components: vec![Component {
            detector,
            package,
            path: String::new(),
            layer: None,
        }],
        ..Bill::default()
    }
}

fn found(database: &dyn Database, bill: &Bill) -> Vec<(String, String)> {
    let found = find(bill, database).unwrap().findings.into_iter();
    found
        .map(|one| (one.id.clone(), one.fixed_versions.join(", ")))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(id, fixed): &(&str, &str)| ((*id).into(), (*fixed).into());
    expected.iter().map(pair).collect()
}

#[test]
fn distributions_are_matched_in_the_stream_of_their_release() {
    let upstream = |id: &str| json!([id]);
    let records = [
        record(
            "DEBIAN-CVE-2025-1",
            json!({"upstream": upstream("CVE-2025-1"), "affected": [
                affected("Debian:12", "openssl", fixed("3.0.11-1")),
                affected("Debian:13", "openssl", json!([{"introduced": "0"}])),
            ]}),
        ),
        record(
            "DSA-1-1",
            json!({"upstream": ["CVE-2025-2", "CVE-2025-3"], "affected": [
                affected("Debian:12", "openssl", fixed("3.0.12-1")),
            ]}),
        ),
        record(
            "UBUNTU-CVE-2025-1",
            json!({"upstream": upstream("CVE-2025-1"),
                "severity": [{"type": "Ubuntu", "score": "negligible"}], "affected": [
                affected("Ubuntu:24.04:LTS", "openssl", fixed("3.0.13-0ubuntu3.2")),
                affected("Ubuntu:18.04:LTS", "openssl", json!([{"introduced": "0"}])),
                affected("Ubuntu:Pro:18.04:LTS", "openssl", fixed("1.1.1-1ubuntu2.1~18.04.23+esm3")),
            ]}),
        ),
        record(
            "USN-5-1",
            json!({"related": ["CVE-2025-5"], "affected": [
                affected("Ubuntu:18.04:LTS", "openssl", fixed("1.1.1-1ubuntu2.1~18.04.1")),
            ]}),
        ),
        record(
            "ALPINE-CVE-2025-1",
            json!({"upstream": upstream("CVE-2025-1"), "affected": [
                affected("Alpine:v3.20", "openssl", fixed("3.3.1-r1")),
                affected("Alpine:v3.21", "openssl", fixed("0")),
            ]}),
        ),
        record(
            "CGA-aaaa-bbbb-cccc",
            json!({"upstream": ["CVE-2025-1", "GHSA-x"], "affected": [
                affected("Wolfi", "openssl", fixed("3.3.2-r0")),
                affected("Chainguard", "openssl", fixed("3.3.3-r0")),
            ]}),
        ),
        record(
            "ALSA-2025:1",
            json!({"related": ["CVE-2025-1", "CVE-2025-4"], "affected": [
                affected("AlmaLinux:9", "openssl-libs", fixed("1:3.0.7-28.el9_4")),
            ]}),
        ),
        record(
            "RLSA-2025:1",
            json!({"upstream": ["CVE-2025-1"], "affected": [
                affected("Rocky Linux:9", "openssl-libs", fixed("1:3.0.7-28.el9_4")),
            ]}),
        ),
        record(
            "SUSE-SU-2025:1-1",
            json!({"upstream": ["CVE-2025-1"], "affected": [{
                "package": {"ecosystem": "SUSE:Linux Enterprise Module for Basesystem 15 SP5", "name": "openssl-3"},
                "ranges": [{"type": "ECOSYSTEM", "events": fixed("3.0.8-150500.5.8.1")}],
                "ecosystem_specific": {"binaries": [{"libopenssl3": "3.0.8-150500.5.8.1", "openssl-3": "3.0.8-150500.5.8.1"}]},
            }]}),
        ),
        record(
            "openSUSE-SU-2025:1-1",
            json!({"related": ["CVE-2025-1"], "affected": [{
                "package": {"ecosystem": "openSUSE:Leap 15.6", "name": "openssl-3"},
                "ranges": [{"type": "ECOSYSTEM", "events": fixed("3.1.4-1")}],
                "ecosystem_specific": {"binaries": [{"libopenssl3": "3.1.4-1"}]},
            }]}),
        ),
        record(
            "RHSA-2025:1",
            json!({"upstream": ["CVE-2025-1"], "affected": [
                affected("Red Hat:enterprise_linux:9::baseos", "openssl", fixed("3.0.7-28.el9_4")),
            ]}),
        ),
    ];
    let index = index(&records);
    let from = |version: &str| Package {
        source: Some(Source {
            name: "openssl".into(),
            version: version.into(),
        }),
        ..Package::new("libssl3", version)
    };
    let extended = Os {
        extended: true,
        ..Os::new(Family::Ubuntu, "18.04")
    };
    let (dpkg, apk, rpm) = (Detector::Dpkg, Detector::Apk, Detector::Rpm);
    for (os, detector, package, expected) in [
        (
            Os::new(Family::Debian, "12.7"),
            dpkg,
            from("3.0.10-1"),
            &[
                ("CVE-2025-1", "3.0.11-1"),
                ("CVE-2025-2", "3.0.12-1"),
                ("CVE-2025-3", "3.0.12-1"),
            ][..],
        ),
        (Os::new(Family::Debian, "12.7"), dpkg, from("3.0.12-1"), &[]),
        (
            Os::new(Family::Debian, "13.1"),
            dpkg,
            from("99"),
            &[("CVE-2025-1", "")],
        ),
        (
            Os::new(Family::Ubuntu, "24.04"),
            dpkg,
            from("3.0.13-0ubuntu3.1"),
            &[("CVE-2025-1", "3.0.13-0ubuntu3.2")],
        ),
        (
            Os::new(Family::Ubuntu, "18.04"),
            dpkg,
            from("1.1.1-0"),
            &[
                ("CVE-2025-1", ""),
                ("CVE-2025-5", "1.1.1-1ubuntu2.1~18.04.1"),
            ],
        ),
        // Extended support has its own fix, and the release's for all else.
        (
            extended.clone(),
            dpkg,
            from("1.1.1-0"),
            &[
                ("CVE-2025-1", "1.1.1-1ubuntu2.1~18.04.23+esm3"),
                ("CVE-2025-5", "1.1.1-1ubuntu2.1~18.04.1"),
            ],
        ),
        (extended, dpkg, from("1.1.1-1ubuntu2.1~18.04.23+esm3"), &[]),
        (
            Os::new(Family::Alpine, "3.20.3"),
            apk,
            from("3.3.1-r0"),
            &[("CVE-2025-1", "3.3.1-r1")],
        ),
        (
            Os::new(Family::Alpine, "3.21.0"),
            apk,
            from("3.3.1-r0"),
            &[],
        ),
        (
            Os::new(Family::Wolfi, "20230201"),
            apk,
            from("3.3.1-r9"),
            &[("CVE-2025-1", "3.3.2-r0")],
        ),
        (
            Os::new(Family::Chainguard, "1"),
            apk,
            from("3.3.2-r0"),
            &[("CVE-2025-1", "3.3.3-r0")],
        ),
        (
            Os::new(Family::Alma, "9.4"),
            rpm,
            Package::new("openssl-libs", "1:3.0.7-27.el9"),
            &[
                ("CVE-2025-1", "1:3.0.7-28.el9_4"),
                ("CVE-2025-4", "1:3.0.7-28.el9_4"),
            ],
        ),
        (
            Os::new(Family::Rocky, "9.4"),
            rpm,
            Package::new("openssl-libs", "1:3.0.7-28.el9_4"),
            &[],
        ),
        (
            Os::new(Family::SuseEnterprise, "15.5"),
            rpm,
            Package::new("libopenssl3", "3.0.8-150500.5.7.1"),
            &[("CVE-2025-1", "3.0.8-150500.5.8.1")],
        ),
        (
            Os::new(Family::OpenSuseLeap, "15.6"),
            rpm,
            Package::new("libopenssl3", "3.1.3-1"),
            &[("CVE-2025-1", "3.1.4-1")],
        ),
    ] {
        let bill = bill(Some(os.clone()), detector, package);
        assert_eq!(found(&index, &bill), pairs(expected), "{os}");
    }
    let left_out = index.summary().unwrap().left_out;
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out.keys().any(|reason| reason.contains("Red Hat")));
    let ubuntu = index.vulnerability("CVE-2025-1").unwrap().unwrap();
    assert_eq!(ubuntu.vendor_severity.get("ubuntu"), Some(&Severity::Low));
    // Seven records are about it, and each has its own title.
    assert_eq!(ubuntu.title, "");
    let stream = Stream::Distribution("ubuntu 24.04".into());
    let advisories = index.advisories(&stream, "openssl").unwrap();
    let described = index.described(&advisories[0]).unwrap().unwrap();
    assert_eq!(described.title, "UBUNTU-CVE-2025-1 in a line");
    assert_eq!(described.vendor_severity, ubuntu.vendor_severity);
}

/// The records behind "libcrypto3 of Alpine has CVE-2024-21193, a mysql security update".
fn records_about_many() -> Vec<Value> {
    let related: Vec<String> = (21_160..21_200)
        .map(|number| format!("CVE-2024-{number}"))
        .chain(["CVE-2024-5535".into(), "CVE-2024-11053".into()])
        .collect();
    let links = |urls: &[&str]| {
        let links = urls.iter().map(|url| json!({"type": "WEB", "url": url}));
        Value::from_iter(links)
    };
    let fips = "https://errata.example.org/9/ALSA-2024-9333.html";
    vec![
        record(
            "ALSA-2025:1673",
            json!({"related": related, "summary": "Important: mysql:8.0 security update",
                "references": links(&[fips, "https://example.org/CVE-2024-21193"]),
                "affected": [affected("AlmaLinux:9", "mysql-server", fixed("8.0.41-1.el9"))]}),
        ),
        record(
            "ALSA-2024:9333",
            json!({"related": ["CVE-2024-5535"], "summary": "Moderate: openssl security update",
                "references": links(&[fips]),
                "affected": [affected("AlmaLinux:9", "openssl-libs", fixed("1:3.2.2-6.el9_5"))]}),
        ),
        record(
            "ALPINE-CVE-2024-5535",
            json!({"upstream": ["CVE-2024-5535"], "summary": "", "details": "",
                "affected": [affected("Alpine:v3.20", "openssl", fixed("3.3.1-r1"))]}),
        ),
        record(
            "GHSA-aaaa-bbbb-cccc",
            json!({"aliases": ["CVE-2024-5535", "CVE-2024-21193", "PYSEC-2024-1"],
                "summary": "Memory disclosure in pyopenssl",
                "affected": [affected("PyPI", "pyopenssl", fixed("24.2.0"))]}),
        ),
        record(
            "CVE-2024-11053",
            json!({"summary": "Credential leak", "references": links(&["https://example.org/leak"]),
                "affected": [affected("npm", "curl", fixed("2.0.0"))]}),
        ),
    ]
}

#[test]
fn a_finding_has_title_references_and_aliases_of_the_advisory_that_matched() {
    let index = index(&records_about_many());
    let source = |name: &str, version: &str| Package {
        source: Some(Source {
            name: "openssl".into(),
            version: version.into(),
        }),
        ..Package::new(name, version)
    };
    let alma = || Some(Os::new(Family::Alma, "9.4"));
    let alpine = Some(Os::new(Family::Alpine, "3.20.3"));
    let (apk, rpm) = (Detector::Apk, Detector::Rpm);
    let (mysql, fips) = (
        "Important: mysql:8.0 security update",
        "https://errata.example.org/9/ALSA-2024-9333.html",
    );
    for (bill, id, title, references, aliases) in [
        (
            bill(alpine, apk, source("libcrypto3", "3.3.1-r0")),
            "CVE-2024-5535",
            "",
            json!(null),
            json!(["ALPINE-CVE-2024-5535"]),
        ),
        (
            bill(alma(), rpm, Package::new("openssl-libs", "1:3.0.7-1.el9")),
            "CVE-2024-5535",
            "Moderate: openssl security update",
            json!([fips]),
            json!(["ALSA-2024:9333"]),
        ),
        (
            bill(alma(), rpm, Package::new("mysql-server", "8.0.36-1.el9")),
            "CVE-2024-21193",
            mysql,
            json!([fips, "https://example.org/CVE-2024-21193"]),
            json!(["ALSA-2025:1673"]),
        ),
        (
            bill(alma(), rpm, Package::new("mysql-server", "8.0.36-1.el9")),
            "CVE-2024-11053",
            mysql,
            json!([
                fips,
                "https://example.org/CVE-2024-21193",
                "https://example.org/leak"
            ]),
            json!(["ALSA-2025:1673"]),
        ),
        (
            bill(
                None,
                Detector::PythonPackage,
                Package::new("pyopenssl", "24.1.0"),
            ),
            "CVE-2024-21193",
            "Memory disclosure in pyopenssl",
            json!(null),
            json!(["GHSA-aaaa-bbbb-cccc", "PYSEC-2024-1"]),
        ),
        (
            bill(None, Detector::NodePackage, Package::new("curl", "1.0.0")),
            "CVE-2024-11053",
            "Credential leak",
            json!(["https://example.org/leak"]),
            json!(null),
        ),
    ] {
        let package = bill.components[0].package.name.clone();
        let findings = find(&bill, &index).unwrap();
        let report = Report::new(&bill, &findings, index.metadata(), None);
        let report = serde_json::to_value(&report).unwrap();
        let found = report["results"][0]["vulnerabilities"].as_array().unwrap();
        let found = found.iter().find(|one| one["cve"] == id).unwrap();
        assert_eq!(
            found["title"].as_str().unwrap_or_default(),
            title,
            "{package} {id}"
        );
        assert_eq!(found["references"], references, "{package} {id}");
        assert_eq!(found["aliases"], aliases, "{package} {id}");
    }
}

#[test]
fn files_of_several_origins_answer_like_one_file_in_any_order() {
    let mut records = records_about_many();
    records.push(record(
        "GO-2024-1",
        json!({"aliases": ["CVE-2024-5535"], "modified": "2024-01-01T00:00:00Z",
            "affected": [affected("PyPI", "pyopenssl", fixed("9.9"))]}),
    ));
    let one = index(&records);
    let parts = |order: &[usize]| {
        let of = |at: &usize| self::index(&records[*at..*at + 1]);
        OsvSet::new(order.iter().map(of).collect())
    };
    let (forth, back) = (parts(&[0, 1, 2, 3, 4, 5]), parts(&[5, 4, 3, 2, 1, 0]));
    assert_eq!(forth.metadata(), back.metadata());
    assert_eq!(
        forth.metadata().updated_at.as_deref(),
        Some("2024-01-01T00:00:00Z")
    );
    assert_ne!(
        forth.metadata().revision,
        parts(&[0, 1]).metadata().revision
    );
    let alone = parts(&[2]);
    assert_eq!(alone.metadata(), index(&records[2..3]).metadata());
    for (stream, package) in [
        (Stream::Distribution("alma 9".into()), "mysql-server"),
        (Stream::Distribution("alpine 3.20".into()), "openssl"),
        (Stream::Ecosystem("pip"), "pyopenssl"),
        (Stream::Ecosystem("npm"), "curl"),
        (Stream::Ecosystem("npm"), "absent"),
    ] {
        let expected = one.advisories(&stream, package).unwrap();
        for set in [&forth, &back] {
            let found = set.advisories(&stream, package).unwrap();
            assert_eq!(found, expected, "{stream:?} {package}");
            assert_eq!(set.has(&stream).unwrap(), one.has(&stream).unwrap());
            for advisory in &expected {
                let told = |data: &dyn Database| data.described(advisory).unwrap().unwrap();
                let (whole, told) = (told(&one), told(set));
                assert_eq!(
                    (told.title, told.references),
                    (whole.title, whole.references)
                );
            }
        }
    }
    // The record that is newer in one origin than in another is used.
    let old = record(
        "GHSA-1",
        json!({"modified": "2025-01-01T00:00:00Z", "affected": [affected("npm", "a", fixed("1.0.0"))]}),
    );
    let new = record(
        "GHSA-1",
        json!({"modified": "2026-01-01T00:00:00Z", "affected": [affected("npm", "a", fixed("2.0.0"))]}),
    );
    let set = OsvSet::new([old, new].map(|one| index(&[one])).into());
    let found = set.advisories(&Stream::Ecosystem("npm"), "a").unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].vulnerable_versions, ["< 2.0.0"]);
}

#[test]
fn records_without_a_date_have_no_age() {
    let zero = |id: &str| {
        record(
            id,
            json!({"modified": "0001-01-01T00:00:00Z", "published": "1970-01-01T00:00:00Z",
                "affected": [affected("npm", "a", fixed("1.0.0"))]}),
        )
    };
    let undated = index(&[zero("GHSA-1")]);
    assert_eq!(undated.metadata().updated_at, None);
    let known = undated.vulnerability("GHSA-1").unwrap().unwrap();
    assert_eq!((known.published, known.modified), (None, None));
    let dated = index(&[
        zero("GHSA-1"),
        record(
            "GHSA-2",
            json!({"affected": [affected("npm", "b", fixed("1.0.0"))]}),
        ),
    ]);
    assert_eq!(
        dated.metadata().updated_at.as_deref(),
        Some("2026-01-02T03:04:05Z")
    );
}

#[test]
fn an_archive_of_one_ecosystem_is_told_from_others() {
    let one = |id: &str, ecosystems: &[&str]| {
        let affected = ecosystems
            .iter()
            .map(|name| affected(name, "a", fixed("1.0")));
        record(id, json!({"affected": Value::from_iter(affected)}))
    };
    for (records, ecosystem) in [
        (
            vec![one("A-1", &["PyPI"]), one("A-2", &["npm", "PyPI"])],
            Some("PyPI"),
        ),
        (
            vec![one("A-1", &["Debian:12", "Debian:13"])],
            Some("Debian"),
        ),
        (vec![one("A-1", &["PyPI"]), one("A-2", &["npm"])], None),
        (vec![one("A-1", &["PyPI", "npm"])], None),
        (
            vec![one("A-1", &["PyPI"]), one("A-2", &["Hex"])],
            Some("PyPI"),
        ),
        (vec![], None),
    ] {
        let (_, compiled) = compile(&records);
        assert_eq!(compiled.ecosystem.as_deref(), ecosystem, "{records:?}");
    }
}

#[test]
fn debians_word_about_a_package_counts() {
    let urgent = |release: &str, urgency: &str, events: Value| {
        let mut one = affected(release, "vim", events);
        one["ecosystem_specific"] = json!({"urgency": urgency});
        one
    };
    let open = json!([{"introduced": "0"}]);
    let index = index(&[record(
        "DEBIAN-CVE-2025-7",
        json!({"upstream": ["CVE-2025-7"],
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "affected": [
            urgent("Debian:11", "end-of-life", open.clone()),
            urgent("Debian:12", "unimportant", open.clone()),
            urgent("Debian:13", "not yet assigned", open),
        ]}),
    )]);
    for (release, status, severity, source) in [
        ("11.9", Status::EndOfLife, Severity::Critical, ""),
        ("12.7", Status::Affected, Severity::Low, "debian"),
        ("13.0", Status::Affected, Severity::Critical, ""),
    ] {
        let os = Some(Os::new(Family::Debian, release));
        let bill = bill(os, Detector::Dpkg, Package::new("vim", "1"));
        let finding = &find(&bill, &index).unwrap().findings[0];
        let told = (
            finding.status,
            finding.severity,
            finding.severity_source.as_str(),
        );
        assert_eq!(told, (status, severity, source), "{release}");
    }
}

#[test]
fn languages_are_matched_by_ranges_and_lists() {
    let ghsa = |id: &str, cve: &str, affected: Value| {
        record(
            id,
            json!({"aliases": [cve], "affected": [affected],
            "database_specific": {"severity": "MODERATE", "cwe_ids": ["CWE-79"]},
            "references": [{"type": "WEB", "url": format!("https://example.org/{cve}")}]}),
        )
    };
    let several = json!([{"fixed": "1.2.3"}, {"introduced": "2.0.0"}, {"introduced": "0"}, {"last_affected": "2.4.0"}]);
    let mut listed = affected(
        "PyPI",
        "Zope.Interface",
        json!([{"introduced": "5.0"}, {"fixed": "5.2"}]),
    );
    listed["versions"] = json!(["5.0", "5.1", "4.7.0", "odd version"]);
    let records = [
        ghsa(
            "GHSA-1",
            "CVE-2025-11",
            affected("npm", "@Scope/Thing", several),
        ),
        ghsa("GHSA-2", "CVE-2025-12", listed),
        ghsa(
            "GHSA-3",
            "CVE-2025-13",
            affected("Go", "github.com/Org/mod", fixed("1.4.0")),
        ),
        record(
            "GO-2025-3",
            json!({"aliases": ["CVE-2025-13", "GHSA-3"], "affected": [
            affected("Go", "github.com/Org/mod", fixed("1.4.0")), affected("Go", "stdlib", fixed("1.22.1"))]}),
        ),
        ghsa(
            "GHSA-4",
            "CVE-2025-14",
            affected("Maven", "org.example:lib", fixed("2.0")),
        ),
        ghsa(
            "GHSA-5",
            "CVE-2025-15",
            affected("RubyGems", "rack", fixed("2.2.8.1")),
        ),
        ghsa(
            "GHSA-6",
            "CVE-2025-16",
            affected("NuGet", "Newtonsoft.Json", fixed("13.0.1")),
        ),
        ghsa(
            "GHSA-7",
            "CVE-2025-17",
            affected("crates.io", "tokio", fixed("1.8.4")),
        ),
        record(
            "RUSTSEC-2025-1",
            json!({"affected": [affected("crates.io", "smallvec", fixed("1.6.1"))]}),
        ),
        record(
            "PYSEC-2025-1",
            json!({"aliases": ["GHSA-9"], "affected": [affected("PyPI", "jinja2", fixed("3.1.4"))]}),
        ),
        record(
            "MAL-2025-1",
            json!({"affected": [affected("npm", "evil", json!([{"introduced": "0"}]))]}),
        ),
        record(
            "GHSA-10",
            json!({"withdrawn": "2026-01-01T00:00:00Z", "affected": [affected("npm", "evil", fixed("9"))]}),
        ),
        record(
            "CVE-2025-18",
            json!({"affected": [{"package": {"ecosystem": "npm", "name": "git-only"},
            "ranges": [{"type": "GIT", "repo": "https://example.org", "events": [{"introduced": "abc"}]}]}]}),
        ),
        json!({"id": 7}),
    ];
    let index = index(&records);
    for (detector, name, version, expected) in [
        (
            Detector::NodePackage,
            "@scope/thing",
            "1.2.2",
            &[("CVE-2025-11", "1.2.3")][..],
        ),
        (Detector::NodePackage, "@scope/thing", "1.2.3", &[]),
        (
            Detector::NodePackage,
            "@scope/thing",
            "2.4.0",
            &[("CVE-2025-11", "1.2.3")],
        ),
        (Detector::NodePackage, "@scope/thing", "2.4.1", &[]),
        (
            Detector::NodePackage,
            "evil",
            "0.0.1",
            &[("MAL-2025-1", "")],
        ),
        (
            Detector::PythonPackage,
            "zope.interface",
            "5.1.0",
            &[("CVE-2025-12", "5.2")],
        ),
        (
            Detector::PythonPackage,
            "zope_interface",
            "4.7",
            &[("CVE-2025-12", "5.2")],
        ),
        (Detector::PythonPackage, "zope.interface", "4.8", &[]),
        (
            Detector::PythonPackage,
            "Jinja2",
            "3.1.3",
            &[("GHSA-9", "3.1.4")],
        ),
        (
            Detector::GoBinary,
            "github.com/Org/mod",
            "v1.3.9",
            &[("CVE-2025-13", "1.4.0")],
        ),
        (Detector::GoBinary, "github.com/org/mod", "v1.3.9", &[]),
        (
            Detector::GoBinary,
            "stdlib",
            "1.22rc1",
            &[("CVE-2025-13", "1.22.1")],
        ),
        (
            Detector::Jar,
            "org.example:lib",
            "2.0-SNAPSHOT",
            &[("CVE-2025-14", "2.0")],
        ),
        (
            Detector::Gemspec,
            "rack",
            "2.2.8",
            &[("CVE-2025-15", "2.2.8.1")],
        ),
        (
            Detector::DotnetCore,
            "newtonsoft.json",
            "12.0.3",
            &[("CVE-2025-16", "13.0.1")],
        ),
        (
            Detector::RustBinary,
            "tokio",
            "1.8.3",
            &[("CVE-2025-17", "1.8.4")],
        ),
        (
            Detector::RustBinary,
            "smallvec",
            "1.6.0",
            &[("RUSTSEC-2025-1", "1.6.1")],
        ),
    ] {
        let bill = bill(None, detector, Package::new(name, version));
        assert_eq!(found(&index, &bill), pairs(expected), "{name} {version}");
    }
    let composer = [ghsa(
        "GHSA-8",
        "CVE-2025-19",
        affected("Packagist", "Symfony/Yaml", fixed("5.4.1")),
    )];
    let composer = self::index(&composer);
    let advisories = composer
        .advisories(&Stream::Ecosystem("composer"), "symfony/yaml")
        .unwrap();
    assert_eq!(advisories[0].vulnerable_versions, ["< 5.4.1"]);
    // The publisher's word, with everything known of the name it is reported under.
    let bill = bill(
        None,
        Detector::GoBinary,
        Package::new("github.com/Org/mod", "v1.0.0"),
    );
    let found = find(&bill, &index).unwrap();
    let finding = &found.findings[0];
    assert_eq!(
        (finding.severity, finding.severity_source.as_str()),
        (Severity::Medium, "ghsa")
    );
    assert_eq!(finding.vulnerability.title, "GHSA-3 in a line");
    assert_eq!(finding.vulnerability.cwes, ["CWE-79"]);
    assert_eq!(
        finding.vulnerability.references,
        ["https://example.org/CVE-2025-13"]
    );
    let go = index
        .advisories(&Stream::Ecosystem("go"), "github.com/Org/mod")
        .unwrap();
    assert_eq!(go[0].vendor_ids, ["GHSA-3"]);
    assert_eq!(go.len(), 1);
    let summary = index.summary().unwrap();
    let reasons: Vec<(&str, u64)> = summary
        .left_out
        .iter()
        .map(|(one, count)| (one.as_str(), *count))
        .collect();
    assert_eq!(
        reasons,
        [
            ("package with no affected version", 1),
            ("ranges of commits", 1),
            ("record that says nothing about any package here", 1),
            ("unreadable record", 1),
            ("withdrawn record", 1),
        ]
    );
    let npm = summary
        .streams
        .iter()
        .find(|stream| stream.name == "npm")
        .unwrap();
    assert_eq!((npm.packages, npm.advisories), (2, Some(2)));
    assert_eq!(
        index.metadata().updated_at.as_deref(),
        Some("2026-01-02T03:04:05Z")
    );
}
