//! The rules of distributions of rpm packages.

use super::{bill, from, ids};
use crate::trivy::{advisory, database};
use muster_scan::matching::find;
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use serde_json::{Value, json};

#[test]
fn distributions_of_rpm_are_matched_by_package_module_and_processor() {
    let mut puts = Vec::new();
    for stream in [
        "alma 9",
        "rocky 9",
        "Oracle Linux 9",
        "amazon linux 1",
        "amazon linux 2023",
        "SUSE Linux Enterprise 15.5",
        "openSUSE Leap 15.6",
        "openSUSE Tumbleweed",
    ] {
        let fixed = json!({"FixedVersion": "1:3.0.7-28.el9"});
        puts.push(advisory(
            stream,
            "libopenssl",
            &format!("CVE-{stream}"),
            fixed,
        ));
    }
    for stream in ["Photon OS 5.0", "Azure Linux 3.0", "CBL-Mariner 2.0"] {
        let fixed = json!({"FixedVersion": "1:3.0.7-28.el9"});
        puts.push(advisory(stream, "openssl", &format!("CVE-{stream}"), fixed));
    }
    let entries = json!({"FixedVersion": "1:9-1", "Entries": [
        {"FixedVersion": "1:3.0.7-30", "Arches": ["aarch64"], "VendorIDs": ["RLSA-1"]},
        {"FixedVersion": "1:3.0.7-29", "Arches": ["x86_64"], "VendorIDs": ["RLSA-1"]}]});
    puts.push(advisory("rocky 9", "libopenssl", "CVE-entries", entries));
    let module = json!({"FixedVersion": "1:4-1"});
    puts.push(advisory(
        "alma 9",
        "nodejs:18::libopenssl",
        "CVE-module",
        module,
    ));
    let ksplice = json!({"FixedVersion": "2:3.0.7-28.0.1.ksplice1.el9"});
    puts.push(advisory(
        "Oracle Linux 9",
        "libopenssl",
        "CVE-ksplice",
        ksplice,
    ));
    let (_directory, database) = database(&puts);
    let package = |modularity: Option<&str>| Package {
        architecture: Some("x86_64".into()),
        modularity: modularity.map(Into::into),
        vendor: Some("Red Hat, Inc.".into()),
        ..from("openssl", "1:3.0.7-27.el9")
    };
    let label = Some("nodejs:18:9020020230327152102:rhel9");
    for (os, modularity, expected) in [
        (Os::new(Family::Alma, "9.4"), None, vec!["CVE-alma 9"]),
        (Os::new(Family::Alma, "9.4"), label, vec!["CVE-module"]),
        (
            Os::new(Family::Rocky, "9.4"),
            None,
            vec!["CVE-entries", "CVE-rocky 9"],
        ),
        (
            Os::new(Family::Oracle, "9.4"),
            None,
            vec!["CVE-Oracle Linux 9"],
        ),
        (
            Os::new(Family::Amazon, "2018.03"),
            None,
            vec!["CVE-amazon linux 1"],
        ),
        (
            Os::new(Family::Amazon, "2023.5.20240805"),
            None,
            vec!["CVE-amazon linux 2023"],
        ),
        (
            Os::new(Family::SuseEnterprise, "15.5"),
            None,
            vec!["CVE-SUSE Linux Enterprise 15.5"],
        ),
        (
            Os::new(Family::OpenSuseLeap, "15.6"),
            None,
            vec!["CVE-openSUSE Leap 15.6"],
        ),
        (
            Os::new(Family::OpenSuseTumbleweed, ""),
            None,
            vec!["CVE-openSUSE Tumbleweed"],
        ),
        (
            Os::new(Family::Photon, "5.0"),
            None,
            vec!["CVE-Photon OS 5.0"],
        ),
        (
            Os::new(Family::Azure, "3.0"),
            None,
            vec!["CVE-Azure Linux 3.0"],
        ),
        (
            Os::new(Family::Mariner, "2.0.20240101"),
            None,
            vec!["CVE-CBL-Mariner 2.0"],
        ),
    ] {
        let bill = bill(Some(os.clone()), Detector::Rpm, package(modularity));
        let found = find(&bill, &database).unwrap();
        let ids: Vec<_> = found.findings.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, expected, "{os}");
    }
}

/// A package `tool` of source `tools`, in another version than its source.
fn tool(version: &str, architecture: &str) -> Package {
    Package {
        architecture: Some(architecture.into()),
        vendor: Some("SUSE LLC".into()),
        source: Some(Source {
            name: "tools".into(),
            version: "9-1".into(),
        }),
        ..Package::new("tool", version)
    }
}

/// The release and its stream; a name and what is said of it; the installed version, its processor,
/// and the fixed version if it is hit.
type Row = (
    Family,
    &'static str,
    &'static str,
    &'static str,
    Value,
    &'static str,
    &'static str,
    Option<&'static str>,
);

#[test]
fn each_distribution_has_its_name_its_version_and_its_processors() {
    let fixed = |version: &str| json!({"FixedVersion": version});
    let entries = json!({"Entries": [
        {"FixedVersion": "0:2-1", "Arches": ["x86_64"]}, {"FixedVersion": "0:3-1", "Arches": ["aarch64"]}]});
    let rows: [Row; 16] = [
        // By the package's name and version; no fix, no finding.
        (
            Family::Alma,
            "9.4",
            "alma 9",
            "tool",
            fixed("0:2-1"),
            "1-1",
            "x86_64",
            Some("2-1"),
        ),
        (
            Family::Alma,
            "9.4",
            "alma 9",
            "tool",
            json!({}),
            "1-1",
            "x86_64",
            None,
        ),
        (
            Family::Alma,
            "8.9",
            "alma 8",
            "tool",
            fixed("2-1"),
            "1-1.module_el8.1",
            "x86_64",
            None,
        ),
        (
            Family::Rocky,
            "9.4",
            "rocky 9",
            "tool",
            entries.clone(),
            "2-0",
            "x86_64",
            Some("2-1"),
        ),
        (
            Family::Rocky,
            "9.4",
            "rocky 9",
            "tool",
            entries.clone(),
            "2-1",
            "aarch64",
            Some("3-1"),
        ),
        (
            Family::Rocky,
            "9.4",
            "rocky 9",
            "tool",
            entries.clone(),
            "1-1",
            "noarch",
            None,
        ),
        (
            Family::Oracle,
            "8.9",
            "Oracle Linux 8",
            "tool",
            entries,
            "1-1",
            "x86_64",
            Some("0:2-1"),
        ),
        (
            Family::Oracle,
            "8.9",
            "Oracle Linux 8",
            "tool",
            fixed("2-1_fips"),
            "1-1",
            "x86_64",
            None,
        ),
        (
            Family::Oracle,
            "8.9",
            "Oracle Linux 8",
            "tool",
            fixed("2-1_fips"),
            "1-1_fips",
            "x86_64",
            Some("2-1_fips"),
        ),
        (
            Family::Oracle,
            "8.9",
            "Oracle Linux 8",
            "tool",
            fixed("2-1.ksplice1.el8"),
            "1-1",
            "x86_64",
            None,
        ),
        (
            Family::Amazon,
            "2022.0",
            "amazon linux 2022",
            "tool",
            fixed("2-1.amzn2022"),
            "1-1",
            "x86_64",
            Some("2-1.amzn2022"),
        ),
        (
            Family::SuseMicro,
            "5.4",
            "SUSE Linux Enterprise Micro 5.4",
            "tool",
            fixed("2-1"),
            "1-1",
            "x86_64",
            Some("2-1"),
        ),
        // By the source's name and the package's version.
        (
            Family::Photon,
            "5.0",
            "Photon OS 5.0",
            "tools",
            fixed("2-1"),
            "1-1",
            "x86_64",
            Some("2-1"),
        ),
        // By the source's name and version, and also without a fix.
        (
            Family::Azure,
            "3.0.20240101",
            "Azure Linux 3.0",
            "tools",
            fixed("0:9-2"),
            "99-1",
            "x86_64",
            Some("9-2"),
        ),
        (
            Family::Mariner,
            "2.0",
            "CBL-Mariner 2.0",
            "tools",
            json!({}),
            "1-1",
            "x86_64",
            Some(""),
        ),
        (
            Family::Bottlerocket,
            "1.20",
            "bottlerocket",
            "tool",
            fixed("2-1"),
            "1-1",
            "x86_64",
            Some("2-1"),
        ),
    ];
    for (family, release, stream, name, value, version, architecture, expected) in rows {
        let (_directory, database) = database(&[advisory(stream, name, "CVE-1", value)]);
        let os = Os::new(family, release);
        let bill = bill(Some(os.clone()), Detector::Rpm, tool(version, architecture));
        let found = find(&bill, &database).unwrap();
        let fixed: Vec<String> = found.findings.iter().map(|one| one.fixed_text()).collect();
        let expected: Vec<String> = expected.into_iter().map(Into::into).collect();
        assert_eq!(fixed, expected, "{os} {version} {architecture}");
    }
}

#[test]
fn packages_of_other_vendors_and_keys_are_left_out() {
    let value = json!({"FixedVersion": "9-1"});
    let puts = [
        advisory("alma 9", "tool", "CVE-1", value.clone()),
        advisory("alma 9", "gpg-pubkey", "CVE-1", value),
    ];
    let (_directory, database) = database(&puts);
    let os = Os::new(Family::Alma, "9.4");
    for (name, version, vendor, expected) in [
        ("tool", "1-1", Some("AlmaLinux"), 1),
        ("tool", "1-1", Some("Docker, Inc."), 0),
        ("tool", "1-1", None, 0),
        ("tool", "1-1.amzn2", None, 1),
        ("gpg-pubkey", "1-1", Some("AlmaLinux"), 0),
    ] {
        let package = Package {
            vendor: vendor.map(Into::into),
            ..Package::new(name, version)
        };
        let found = ids(&os, Detector::Rpm, package, &database);
        assert_eq!(found.len(), expected, "{name} {vendor:?}");
    }
    // A bill of another tool does not say who the vendor is.
    let mut bill = bill(Some(os), Detector::Rpm, Package::new("tool", "1-1"));
    bill.components[0].path.clear();
    assert_eq!(find(&bill, &database).unwrap().findings.len(), 1);
}

#[test]
fn a_distribution_without_advisories_is_noted() {
    let (_directory, database) = database(&[advisory("x", "tool", "CVE-1", json!({}))]);
    for os in [
        Os::new(Family::Fedora, "40"),
        Os::new(Family::Other("void".into()), "1"),
    ] {
        let bill = bill(Some(os.clone()), Detector::Rpm, tool("1-1", "x86_64"));
        let found = find(&bill, &database).unwrap();
        assert!(found.findings.is_empty());
        assert_eq!(found.unmatched.len(), 1, "{os}");
        assert!(!found.unmatched[0].matchable, "{os}");
    }
}
