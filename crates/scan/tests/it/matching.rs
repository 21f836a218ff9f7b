//! The rules of each distribution and language, with the vendor's own expectations.

use crate::trivy::{advisory, database, source};
use muster_scan::image::Component;
use muster_scan::matching::find;
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::sbom::Bill;
use serde_json::json;

fn bill(os: Option<Os>, detector: Detector, package: Package) -> Bill {
    Bill {
        os,
        components: vec![Component {
            detector,
            package,
            path: "somewhere".into(),
            layer: None,
        }],
        ..Bill::default()
    }
}

fn from(source: &str, version: &str) -> Package {
    Package {
        source: Some(Source {
            name: source.into(),
            version: version.into(),
        }),
        ..Package::new(format!("lib{source}"), version)
    }
}

#[test]
fn distributions_are_matched_by_source_in_their_own_stream() {
    let mut puts = Vec::new();
    for stream in [
        "debian 12",
        "ubuntu 24.04",
        "ubuntu 18.04-ESM",
        "alpine 3.20",
        "alpine edge",
        "wolfi",
        "chainguard",
        "minimos",
    ] {
        puts.push(source(stream, stream.split(' ').next().unwrap()));
        puts.push(advisory(
            stream,
            "openssl",
            "CVE-1",
            json!({"FixedVersion": "3.0.2-r1"}),
        ));
        puts.push(advisory(
            stream,
            "openssl",
            "CVE-2",
            json!({"FixedVersion": "0"}),
        ));
        let id = format!("CVE-{}", stream.replace(' ', "-"));
        puts.push(advisory(stream, "openssl", &id, json!({})));
    }
    let affected = json!({"AffectedVersion": "3.0.1-r0", "FixedVersion": "3.0.9-r0"});
    puts.push(advisory("alpine 3.20", "openssl", "CVE-3", affected));
    let (_directory, database) = database(&puts);
    let alpine_edge = Os {
        repository: Some("edge".into()),
        ..Os::new(Family::Alpine, "3.20.3")
    };
    let extended = Os {
        extended: true,
        ..Os::new(Family::Ubuntu, "18.04")
    };
    let (dpkg, apk) = (Detector::Dpkg, Detector::Apk);
    for (os, detector, version, expected) in [
        (
            Os::new(Family::Debian, "12.7"),
            dpkg,
            "3.0.2-r0",
            vec!["CVE-1", "CVE-debian-12"],
        ),
        (
            Os::new(Family::Debian, "12.7"),
            dpkg,
            "3.0.2-r1",
            vec!["CVE-debian-12"],
        ),
        (
            Os::new(Family::Ubuntu, "24.04"),
            dpkg,
            "3.0.2-r0",
            vec!["CVE-1", "CVE-ubuntu-24.04"],
        ),
        (extended, dpkg, "3.0.2-r1", vec!["CVE-ubuntu-18.04-ESM"]),
        (Os::new(Family::Ubuntu, "23.10"), dpkg, "1", vec![]),
        (
            Os::new(Family::Alpine, "3.20.3"),
            apk,
            "3.0.2-r0",
            vec!["CVE-1", "CVE-3", "CVE-alpine-3.20"],
        ),
        (
            Os::new(Family::Alpine, "3.20.3"),
            apk,
            "3.0.1_rc1-r0",
            vec!["CVE-1", "CVE-alpine-3.20"],
        ),
        (
            alpine_edge,
            apk,
            "3.0.2-r0",
            vec!["CVE-1", "CVE-alpine-edge"],
        ),
        (
            Os::new(Family::Wolfi, "20230201"),
            apk,
            "3.0.2-r0",
            vec!["CVE-1", "CVE-wolfi"],
        ),
        (
            Os::new(Family::Chainguard, "1"),
            apk,
            "3.0.2-r1",
            vec!["CVE-chainguard"],
        ),
        (
            Os::new(Family::MinimOs, "1"),
            apk,
            "3.0.2-r1",
            vec!["CVE-minimos"],
        ),
    ] {
        let bill = bill(Some(os.clone()), detector, from("openssl", version));
        let found = find(&bill, &database).unwrap();
        let ids: Vec<_> = found.findings.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, expected, "{os} {version}");
    }
}

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
        let line = |one: &muster_scan::matching::Finding| {
            format!("{} {}", one.id, one.fixed_versions.join(" "))
        };
        let found: Vec<_> = found.findings.iter().map(line).collect();
        assert_eq!(found, expected, "{name} {version}");
    }
}

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
