//! The file that OSV records are compiled into: always the same, and read with care.

use crate::osv::{affected, compile, fixed, record};
use muster_scan::vulnerability::osv::OsvIndex;
use muster_scan::vulnerability::{Database, Stream};
use serde_json::{Value, json};

fn many(count: usize) -> Vec<Value> {
    let one = |number: usize| {
        let (ecosystem, name) = match number % 3 {
            0 => ("npm", format!("package-{}", number % 97)),
            1 => ("Debian:12", format!("source-{}", number % 89)),
            _ => ("PyPI", format!("thing-{}", number % 83)),
        };
        record(
            &format!("GHSA-{number}"),
            json!({"aliases": [format!("CVE-2025-{}", number / 2)],
            "details": format!("{number} ").repeat(200),
            "affected": [affected(ecosystem, &name, fixed(&format!("1.{number}.0")))]}),
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn the_same_records_make_the_same_bytes_in_any_order() {
    let mut records = many(300);
    let (first, compiled) = compile(&records);
    records.reverse();
    let (second, _) = compile(&records);
    assert!(first == second);
    assert_eq!(compiled.records, 300);
    assert_eq!(compiled.summary.vulnerabilities, 150);
    let index = OsvIndex::open(first).unwrap();
    assert_eq!(index.metadata().revision, compiled.revision);
    for number in 0..150 {
        let known = index
            .vulnerability(&format!("CVE-2025-{number}"))
            .unwrap()
            .unwrap();
        assert_eq!(known.title, "", "a text belongs to its record");
        assert!(known.published.is_some());
    }
    for number in 0..300 {
        let record = index.vulnerability(&format!("GHSA-{number}")).unwrap();
        let title = format!("GHSA-{number} in a line");
        assert_eq!(record.unwrap().title, title);
    }
    assert_eq!(index.vulnerability("CVE-2025-150").unwrap(), None);
    let empty = OsvIndex::open(compile(&[]).0).unwrap();
    assert_eq!(
        empty.advisories(&Stream::Ecosystem("npm"), "x").unwrap(),
        []
    );
    assert_eq!(empty.vulnerability("x").unwrap(), None);
}

#[test]
fn damaged_files_give_errors_and_never_more() {
    let (good, _) = compile(&many(60));
    let probe = |bytes: Vec<u8>| {
        let Ok(index) = OsvIndex::open(bytes) else {
            return;
        };
        let _ = index.verify();
        for number in 0..60 {
            let _ = index.vulnerability(&format!("CVE-2025-{number}"));
            for (stream, name) in [("npm", "package"), ("pip", "thing")] {
                let stream = Stream::Ecosystem(stream);
                let _ = index.advisories(&stream, &format!("{name}-{number}"));
            }
            let debian = Stream::Distribution("debian 12".into());
            let _ = index.advisories(&debian, &format!("source-{number}"));
        }
    };
    for cut in (0..good.len()).step_by(97) {
        probe(good[..cut].to_vec());
    }
    let mut state = 1_u64;
    for place in (0..good.len()).step_by(53).chain(0..152) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut bad = good.clone();
        bad[place] ^= (state >> 56) as u8 | 1;
        let changed = OsvIndex::open(bad.clone());
        assert!(
            changed.is_err() || changed.unwrap().verify().is_err(),
            "{place}"
        );
        probe(bad);
    }
}
