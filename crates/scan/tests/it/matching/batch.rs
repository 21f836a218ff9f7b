//! Many bills with one body of data, and the way back from the data to the bills.

use super::{bill, from};
use crate::trivy::{advisory, database, source};
use muster_scan::matching::batch::Batch;
use muster_scan::matching::find;
use muster_scan::matching::index::{Index, Key, changed, keys};
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package};
use muster_scan::sbom::Bill;
use muster_scan::vulnerability::Stream;
use muster_testkit::bolt::Put;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

fn puts(fixed: &str, severity: u32) -> Vec<Put> {
    let vulnerability = json!({"VendorSeverity": {"nvd": severity}});
    vec![
        source("debian 12", "debian"),
        advisory(
            "debian 12",
            "openssl",
            "CVE-1",
            json!({"FixedVersion": fixed}),
        ),
        advisory("debian 12", "zlib", "CVE-2", json!({"FixedVersion": "9"})),
        advisory(
            "npm::A",
            "lodash",
            "CVE-3",
            json!({"VulnerableVersions": ["< 4.17.21"]}),
        ),
        advisory(
            "Red Hat",
            "tool",
            "CVE-4",
            json!({"Entries": [{"Cves": [{"Severity": 1}], "Affected": [1]}]}),
        ),
        Put::text(
            &["Red Hat CPE", "repository"],
            "rhel-9-for-x86_64-baseos-rpms",
            "[1]",
        ),
        Put::text(&["vulnerability"], "CVE-3", vulnerability.to_string()),
    ]
}

fn bills() -> Vec<Bill> {
    let debian = || Some(Os::new(Family::Debian, "12"));
    let mut red_hat = Package::new("tool", "1-1");
    red_hat.vendor = Some("Red Hat, Inc.".into());
    vec![
        bill(debian(), Detector::Dpkg, from("openssl", "1")),
        bill(debian(), Detector::Dpkg, from("openssl", "3")),
        bill(debian(), Detector::Dpkg, from("zlib", "1")),
        bill(
            None,
            Detector::NodePackage,
            Package::new("lodash", "4.17.20"),
        ),
        bill(Some(Os::new(Family::RedHat, "9.4")), Detector::Rpm, red_hat),
        bill(debian(), Detector::Dpkg, from("quiet", "1")),
    ]
}

#[test]
fn a_batch_finds_for_each_bill_what_it_finds_alone() {
    let (_directory, database) = database(&puts("2", 3));
    let batch = Batch::new(&database, None);
    let bills = bills();
    let found: Vec<usize> = bills
        .iter()
        .map(|bill| find(bill, &database).unwrap().findings.len())
        .collect();
    assert_eq!(found, [1, 0, 1, 1, 1, 0]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    for bill in &bills {
                        assert_eq!(batch.find(bill).unwrap(), find(bill, &database).unwrap());
                    }
                }
            });
        }
    });
}

fn texts<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Vec<String> {
    keys.into_iter().map(ToString::to_string).collect()
}

#[test]
fn a_change_of_the_data_touches_the_bills_that_are_looked_up_there() {
    let (_old, old) = database(&puts("2", 3));
    let mut index = Index::default();
    for (number, bill) in bills().iter().enumerate() {
        index.insert(&number.to_string(), keys(bill, None));
    }
    assert_eq!(index.size(), (6, 6 + 1));
    // What was never seen counts as changed, and nothing does when nothing changes.
    assert_eq!(index.update(&old).unwrap().len(), 7);
    assert!(index.update(&old).unwrap().is_empty());
    let stored = serde_json::to_vec(&index).unwrap();
    let mut index: Index = serde_json::from_slice(&stored).unwrap();

    let (_new, new) = database(&puts("4", 3));
    let all: Vec<Key> = bills().iter().flat_map(|bill| keys(bill, None)).collect();
    let differing = changed(&old, &new, &all).unwrap();
    assert_eq!(differing.len(), 2, "two bills have it: {differing:?}");
    let differing = index.update(&new).unwrap();
    assert_eq!(texts(&differing), ["distribution\tdebian 12\topenssl"]);
    assert_eq!(Vec::from_iter(index.touched(&differing)), ["0", "1"]);

    // Another rating of a vulnerability is a change as well.
    let (_rated, rated) = database(&puts("4", 4));
    let differing = index.update(&rated).unwrap();
    assert_eq!(texts(&differing), ["ecosystem\tnpm\tlodash"]);
    assert_eq!(Vec::from_iter(index.touched(&differing)), ["3"]);

    // And so are other products behind a content set.
    let mut other = puts("4", 4);
    other.push(Put::text(
        &["Red Hat CPE", "repository"],
        "rhel-9-for-x86_64-baseos-rpms",
        "[1,2]",
    ));
    let (_other, other) = database(&other);
    let differing = index.update(&other).unwrap();
    assert_eq!(Vec::from_iter(index.touched(&differing)), ["4"]);
}

#[test]
fn bills_come_and_go() {
    let key = |name: &str| Key::new(Stream::Distribution("debian 12".into()), name);
    let mut index = Index::default();
    index.insert("a", [key("x"), key("y")].into());
    index.insert("b", [key("y")].into());
    assert_eq!(Vec::from_iter(index.touched(&[key("y")])), ["a", "b"]);
    index.insert("a", [key("z")].into());
    assert_eq!(Vec::from_iter(index.touched(&[key("y")])), ["b"]);
    assert_eq!(index.size(), (2, 2));
    index.remove("b");
    index.remove("never there");
    assert_eq!(index.size(), (1, 1));
    for wrong in [
        "",
        "distribution\tx",
        "ecosystem\tnone\tx",
        "products\tx\ty",
    ] {
        assert!(Key::try_from(wrong.to_owned()).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_index_says_what_looking_at_every_bill_would() {
    let key = |number: u64| {
        let stream = Stream::Distribution("debian 12".into());
        Key::new(stream, format!("package{number}"))
    };
    let mut state = 7_u64;
    let mut below = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % end
    };
    let mut index = Index::default();
    let mut bills: BTreeMap<String, BTreeSet<Key>> = BTreeMap::new();
    for _ in 0..3_000 {
        let bill = below(60).to_string();
        if below(3) == 0 {
            index.remove(&bill);
            bills.remove(&bill);
        } else {
            let keys: BTreeSet<Key> = (0..below(6)).map(|_| key(below(40))).collect();
            index.insert(&bill, keys.clone());
            bills.insert(bill, keys);
        }
        let asked = [key(below(40)), key(below(40))];
        let expected = bills.iter().filter(|(_, keys)| {
            let mut asked = asked.iter();
            asked.any(|key| keys.contains(key))
        });
        let expected: Vec<&str> = expected.map(|(name, _)| name.as_str()).collect();
        assert_eq!(Vec::from_iter(index.touched(&asked)), expected);
        assert_eq!(index.size().0, bills.len());
    }
}
