//! The rules of Debian and Ubuntu.

use super::{bill, extended, from, ids, lines};
use crate::trivy::{advisory, database, source};
use muster_scan::matching::{find, find_at};
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package};
use muster_testkit::bolt::Put;
use serde_json::json;

#[test]
fn debian_says_what_it_does_and_how_bad_it_is_for_the_package() {
    let vulnerability = json!({"Severity": "HIGH", "VendorSeverity": {"debian": 1, "nvd": 4}});
    let mut puts = vec![source("debian 12", "debian")];
    for (id, value) in [
        ("CVE-01", json!({"FixedVersion": "2.0-1"})),
        ("CVE-02", json!({"FixedVersion": "1.0-1"})),
        ("CVE-03", json!({})),
        ("CVE-04", json!({"Status": 2, "Severity": 1})),
        ("CVE-05", json!({"Status": 5})),
        ("CVE-06", json!({"Status": 6, "Severity": 4})),
        ("CVE-07", json!({"Status": 7})),
        ("CVE-08", json!({"Status": 4})),
        ("CVE-09", json!({"Status": 1})),
        // A fix is a fix, whatever else is said.
        (
            "CVE-10",
            json!({"Status": 5, "FixedVersion": "1.0-1+deb12u1", "VendorIDs": ["DSA-1-1"]}),
        ),
        ("CVE-11", json!({"FixedVersion": "none of that"})),
    ] {
        puts.push(advisory("debian 12", "tools", id, value));
        if id != "CVE-08" {
            puts.push(Put::text(&["vulnerability"], id, vulnerability.to_string()));
        }
    }
    let (_directory, database) = database(&puts);
    let bill = bill(
        Some(Os::new(Family::Debian, "12.7")),
        Detector::Dpkg,
        from("tools", "1.0-1"),
    );
    assert_eq!(
        lines(&find(&bill, &database).unwrap()),
        [
            "CVE-01 [2.0-1] fixed LOW debian",
            "CVE-03 [] affected LOW debian",
            "CVE-04 [] affected LOW debian",
            "CVE-05 [] will_not_fix LOW debian",
            "CVE-06 [] fix_deferred CRITICAL debian",
            "CVE-07 [] end_of_life LOW debian",
            "CVE-08 [] under_investigation UNKNOWN ",
            "CVE-10 [1.0-1+deb12u1] fixed LOW debian",
        ]
    );
}

#[test]
fn a_version_that_is_none_is_not_judged() {
    let (_directory, database) = database(&[
        advisory("debian 12", "tools", "CVE-1", json!({})),
        advisory("debian 12", "tools", "CVE-2", json!({"FixedVersion": "9"})),
    ]);
    let os = Os::new(Family::Debian, "12");
    for version in ["", "a b", "1:"] {
        let found = ids(&os, Detector::Dpkg, from("tools", version), &database);
        assert!(found.is_empty(), "{version:?} {found:?}");
    }
}

#[test]
fn ubuntu_has_a_stream_for_what_is_maintained_longer() {
    let mut puts = Vec::new();
    for release in [
        "18.04",
        "18.04-ESM",
        "22.04",
        "22.04-ESM",
        "24.04",
        "24.04-ESM",
    ] {
        let stream = format!("ubuntu {release}");
        puts.push(source(&stream, "ubuntu"));
        // Its statuses and ratings of packages are none of Ubuntu's.
        let value = json!({"Status": 5, "Severity": 4});
        puts.push(advisory(&stream, "tools", &format!("CVE-{release}"), value));
    }
    let (_directory, database) = database(&puts);
    let (early, late) = ("2026-11-16T00:00:00Z", "2027-04-24T00:00:00Z");
    for (os, now, expected) in [
        (Os::new(Family::Ubuntu, "18.04"), early, "CVE-18.04"),
        (extended("18.04"), early, "CVE-18.04-ESM"),
        (extended("22.04"), early, "CVE-22.04"),
        (extended("22.04"), late, "CVE-22.04-ESM"),
        (extended("24.04"), late, "CVE-24.04"),
    ] {
        let bill = bill(Some(os.clone()), Detector::Dpkg, from("tools", "1"));
        let found = find_at(&bill, &database, now.parse().unwrap()).unwrap();
        let expected = format!("{expected} [] affected UNKNOWN ");
        assert_eq!(lines(&found), [expected], "{os} {now}");
    }
}

#[test]
fn the_end_of_a_release_is_told_at_the_time_of_the_data_or_of_the_caller() {
    // The data of these tests is of the second of January 2026.
    let (_directory, database) = database(&[advisory("debian 11", "a", "CVE-1", json!({}))]);
    let debian = |release: &str| {
        let os = Some(Os::new(Family::Debian, release));
        bill(os, Detector::Dpkg, from("a", "1"))
    };
    let ended = find(&debian("10.13"), &database).unwrap().end_of_life;
    assert_eq!(ended.unwrap().release, "10");
    let found = find(&debian("11.9"), &database).unwrap();
    assert_eq!((found.end_of_life, found.findings.len()), (None, 1));
    let now = "2026-11-16T00:00:00Z".parse().unwrap();
    let found = find_at(&debian("11.9"), &database, now).unwrap();
    assert_eq!(found.end_of_life.unwrap().date.to_string(), "2026-08-14");
    assert_eq!(found.findings.len(), 1);
}

#[test]
fn packages_of_other_makers_are_left_out_and_noted() {
    let (_directory, database) =
        database(&[advisory("debian 12", "docker-ce", "CVE-1", json!({}))]);
    let os = Os::new(Family::Debian, "12");
    for (maintainer, expected) in [
        ("Docker <support@docker.com>", 0),
        ("Debian Go Team <team+go@tracker.debian.org>", 1),
    ] {
        let package = Package {
            vendor: Some(maintainer.into()),
            ..Package::new("docker-ce", "1")
        };
        let found = find(&bill(Some(os.clone()), Detector::Dpkg, package), &database).unwrap();
        assert_eq!(found.findings.len(), expected, "{maintainer}");
        assert_eq!(found.unmatched.len(), 1 - expected, "{maintainer}");
    }
}
