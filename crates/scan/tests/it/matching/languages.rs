//! The rules of languages.

use super::{bill, lines};
use crate::trivy::{advisory, database, source};
use muster_scan::matching::{Finding, find};
use muster_scan::package::{Detector, Package};
use muster_testkit::bolt::Put;
use serde_json::{Value, json};

#[test]
fn languages_are_matched_by_ranges_of_every_source() {
    let github = "npm::GitHub Security Advisory Npm";
    let other = "npm::Node.js Working Group";
    let range = |vulnerable: &[&str]| json!({"VulnerableVersions": vulnerable});
    let puts = [
        source(github, "ghsa"),
        source(other, "nodejs-security-wg"),
        advisory(
            github,
            "lodash",
            "CVE-1",
            json!({
            "VulnerableVersions": ["< 4.17.21"], "PatchedVersions": ["4.17.21"]}),
        ),
        advisory(
            github,
            "lodash",
            "CVE-2",
            range(&[">= 3.0.0, < 3.5.0", ">= 4.0.0, < 4.17.16"]),
        ),
        advisory(other, "lodash", "CVE-1", range(&["<4.17.21"])),
        advisory(
            other,
            "lodash",
            "CVE-3",
            json!({"PatchedVersions": [">=4.17.20"]}),
        ),
        advisory(
            other,
            "lodash",
            "CVE-4",
            json!({"VulnerableVersions": [""]}),
        ),
        advisory(
            "pip::GitHub Security Advisory Pip",
            "ruamel-yaml",
            "CVE-5",
            range(&["< 1.0.post2"]),
        ),
        advisory(
            "go::GitHub Security Advisory Go",
            "github.com/Azure/x",
            "CVE-6",
            range(&[">= 1.0.0, < 1.2.3"]),
        ),
        advisory(
            "go::The Go Vulnerability Database",
            "stdlib",
            "CVE-7",
            range(&["<1.21.8", ">=1.22.0-0, <1.22.1"]),
        ),
        advisory("npm-like", "lodash", "CVE-8", range(&["> 0"])),
    ];
    let (_directory, database) = database(&puts);
    let (npm, python, go) = (
        Detector::NodePackage,
        Detector::PythonPackage,
        Detector::GoBinary,
    );
    for (detector, name, version, expected) in [
        (
            npm,
            "lodash",
            "4.17.15",
            vec![
                "CVE-1 4.17.21",
                "CVE-2 3.5.0 4.17.16",
                "CVE-3 >=4.17.20",
                "CVE-4 ",
            ],
        ),
        (npm, "Lodash", "4.17.20", vec!["CVE-1 4.17.21", "CVE-4 "]),
        (npm, "lodash", "4.17.21", vec!["CVE-4 "]),
        (npm, "lodash", "", vec![]),
        (npm, "lodash", "latest", vec![]),
        (python, "ruamel_YAML", "1.0.post1", vec!["CVE-5 1.0.post2"]),
        (python, "ruamel_YAML", "1.0.post2", vec![]),
        (go, "github.com/Azure/x", "v1.2.2", vec!["CVE-6 1.2.3"]),
        (go, "github.com/azure/x", "v1.2.2", vec![]),
        (go, "stdlib", "v1.22rc1", vec!["CVE-7 1.21.8 1.22.1"]),
        (go, "stdlib", "v1.22.1", vec![]),
    ] {
        let bill = bill(None, detector, Package::new(name, version));
        let found = find(&bill, &database).unwrap();
        let line = |one: &Finding| format!("{} {}", one.id, one.fixed_versions.join(" "));
        let found: Vec<_> = found.findings.iter().map(line).collect();
        assert_eq!(found, expected, "{name} {version}");
    }
}

fn range(vulnerable: &[&str]) -> Value {
    json!({"VulnerableVersions": vulnerable})
}

#[test]
fn every_language_has_its_own_order_names_and_signs() {
    let (npm, python, ruby) = (
        Detector::NodePackage,
        Detector::PythonPackage,
        Detector::Gemspec,
    );
    let (java, php, net, rust) = (
        Detector::Jar,
        Detector::Composer,
        Detector::DotnetCore,
        Detector::RustBinary,
    );
    for (detector, stream, key, name, ranges, hit, spared) in [
        // An announced release is below it, and inside of a range that ends with it.
        (
            npm,
            "npm",
            "a",
            "A",
            "< 1.2.3",
            vec!["1.2.3-rc.1", "1.2.2"],
            vec!["1.2.3"],
        ),
        (
            npm,
            "npm",
            "@b/c",
            "@b/c",
            "<= 2.0",
            vec!["2.0.9"],
            vec!["2.1.0"],
        ),
        // For Python it is not.
        (
            python,
            "pip",
            "a-b",
            "A_b",
            "< 1.2",
            vec!["1.1rc1", "1.1"],
            vec!["1.2rc1", "1.2"],
        ),
        (
            python,
            "pip",
            "c.d",
            "c.d",
            "== 1.*",
            vec!["1.9"],
            vec!["2.0"],
        ),
        (
            ruby,
            "rubygems",
            "a",
            "a",
            "~> 1.2.0",
            vec!["1.2.9"],
            vec!["1.3.0.rc1", "1.3.0"],
        ),
        (
            java,
            "maven",
            "g:a",
            "G:a",
            "[1.0,2.0)",
            vec!["1.0", "2.0-rc1"],
            vec!["2.0", "2.0-sp1"],
        ),
        (
            java,
            "maven",
            "g:b",
            "g:b",
            ">= 1.0, < 1.1-jre",
            vec!["1.1-android"],
            vec!["1.1-jre"],
        ),
        (
            php,
            "composer",
            "v/p",
            "v/P",
            ">= 1.0, < 1.2.0",
            vec!["v1.1.9", "1.2.0-RC1"],
            vec!["1.2.0-p1", "dev-main"],
        ),
        (
            net,
            "nuget",
            "newtonsoft.json",
            "Newtonsoft.Json",
            "< 13.0.1",
            vec!["13.0.0.9"],
            vec!["13.0.1"],
        ),
        (
            rust,
            "cargo",
            "a",
            "a",
            ">=0.1.0, <0.2.5",
            vec!["0.2.4"],
            vec!["0.2.5"],
        ),
    ] {
        let bucket = format!("{stream}::Some Source");
        let (_directory, database) = database(&[advisory(&bucket, key, "CVE-1", range(&[ranges]))]);
        let found = |version: &str| {
            let bill = bill(None, detector, Package::new(name, version));
            !find(&bill, &database).unwrap().findings.is_empty()
        };
        for version in hit {
            assert!(found(version), "{name} {version} {ranges}");
        }
        for version in spared {
            assert!(!found(version), "{name} {version} {ranges}");
        }
    }
}

#[test]
fn lists_of_what_is_safe_and_ranges_that_are_none() {
    let cases: [(&str, Value, bool); 9] = [
        (
            "patched alone",
            json!({"PatchedVersions": [">= 2.0"]}),
            true,
        ),
        ("patched", json!({"PatchedVersions": [">= 1.0"]}), false),
        (
            "unaffected",
            json!({"VulnerableVersions": ["< 2"], "UnaffectedVersions": ["~> 1.5"]}),
            false,
        ),
        ("empty", json!({"VulnerableVersions": [""]}), true),
        (
            "empty patch",
            json!({"VulnerableVersions": ["< 1"], "PatchedVersions": [""]}),
            true,
        ),
        ("nothing", json!({}), false),
        ("broken", json!({"VulnerableVersions": ["< "]}), false),
        (
            "broken beside",
            json!({"VulnerableVersions": ["< 2", "[1"]}),
            false,
        ),
        (
            "alternatives",
            json!({"VulnerableVersions": ["< 1", ">= 1.5, < 2"]}),
            true,
        ),
    ];
    let bucket = "rubygems::Ruby Advisory Database";
    for (name, value, expected) in cases {
        let (_directory, database) = database(&[advisory(bucket, "rails", "CVE-1", value)]);
        let bill = bill(None, Detector::Gemspec, Package::new("rails", "1.5.3"));
        let found = find(&bill, &database).unwrap();
        assert_eq!(!found.findings.is_empty(), expected, "{name}");
    }
}

#[test]
fn of_several_sources_the_last_speaks_and_the_rest_is_shown_once() {
    let (first, last) = ("npm::A", "npm::B");
    let vulnerability = |value: Value| Put::text(&["vulnerability"], "CVE-1", value.to_string());
    let two = json!({"VulnerableVersions": ["< 2", ">= 3, < 3.5", ">= 4, <3.5"]});
    for (puts, expected) in [
        // The last source says that it is fixed.
        (
            vec![
                source(first, "a"),
                source(last, "b"),
                advisory(first, "a", "CVE-1", range(&["< 9"])),
                advisory(last, "a", "CVE-1", range(&["< 1"])),
            ],
            vec![],
        ),
        (
            vec![
                source(first, "a"),
                source(last, "b"),
                advisory(first, "a", "CVE-1", range(&["< 1"])),
                advisory(last, "a", "CVE-1", two),
            ],
            vec!["CVE-1 [2, 3.5] fixed UNKNOWN "],
        ),
        (
            vec![
                source(first, "ghsa"),
                advisory(first, "a", "CVE-1", range(&["< 9"])),
                vulnerability(json!({"Severity": "LOW", "VendorSeverity": {"ghsa": 3, "nvd": 4}})),
            ],
            vec!["CVE-1 [9] fixed HIGH ghsa"],
        ),
        (
            vec![
                source(first, "glad"),
                advisory(first, "a", "CVE-1", range(&["<= 9"])),
                vulnerability(json!({"Severity": "LOW", "VendorSeverity": {"ghsa": 3, "nvd": 4}})),
            ],
            vec!["CVE-1 [] affected CRITICAL nvd"],
        ),
        (
            vec![
                source(first, "glad"),
                advisory(
                    first,
                    "a",
                    "CVE-1",
                    json!({"PatchedVersions": ["2.0.0", "2.0.0"]}),
                ),
                vulnerability(json!({"Severity": "LOW", "VendorSeverity": {"ghsa": 3, "nvd": 0}})),
            ],
            vec!["CVE-1 [2.0.0] fixed LOW "],
        ),
    ] {
        let (_directory, database) = database(&puts);
        let bill = bill(None, Detector::NodePackage, Package::new("a", "1.0.0"));
        assert_eq!(lines(&find(&bill, &database).unwrap()), expected);
    }
}
