//! The rules of Alpine and of those that use its package manager.

use super::{bill, from};
use crate::trivy::{advisory, database, source};
use muster_scan::matching::find;
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use serde_json::json;

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
        // Where unfixed ones are published, they hit every version.
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
            vec!["CVE-1"],
        ),
        (Os::new(Family::Chainguard, "1"), apk, "3.0.2-r1", vec![]),
        (Os::new(Family::MinimOs, "1"), apk, "3.0.2-r1", vec![]),
    ] {
        let bill = bill(Some(os.clone()), detector, from("openssl", version));
        let found = find(&bill, &database).unwrap();
        let ids: Vec<_> = found.findings.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, expected, "{os} {version}");
    }
}

#[test]
fn wolfi_compares_the_version_of_the_package_and_alpine_that_of_the_source() {
    let fixed = json!({"FixedVersion": "2.0-r0"});
    let puts = [
        advisory("wolfi", "openssl", "CVE-1", fixed.clone()),
        advisory("alpine 3.20", "openssl", "CVE-1", fixed),
        advisory(
            "wolfi",
            "openssl",
            "CVE-2",
            json!({"FixedVersion": "broken"}),
        ),
        advisory(
            "alpine 3.20",
            "openssl",
            "CVE-2",
            json!({"FixedVersion": "broken"}),
        ),
        advisory(
            "alpine 3.20",
            "openssl",
            "CVE-3",
            json!({"AffectedVersion": "broken"}),
        ),
    ];
    let (_directory, database) = database(&puts);
    let package = Package {
        source: Some(Source {
            name: "openssl".into(),
            version: "1.0-r0".into(),
        }),
        ..Package::new("libssl3", "3.0-r0")
    };
    for (os, expected) in [
        (Os::new(Family::Wolfi, "20230201"), vec![]),
        (Os::new(Family::Alpine, "3.20.1"), vec!["CVE-1"]),
    ] {
        let found = super::ids(&os, Detector::Apk, package.clone(), &database);
        assert_eq!(found, expected, "{os}");
    }
}
