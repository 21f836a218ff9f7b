//! Versions and ranges: an order is one, whichever way it is asked; URLs survive being written.

use muster_scan::purl::Purl;
use muster_scan::version::range::{Compare, Range};
use muster_scan::version::{apk, composer, dpkg, maven, python, rpm, semantic};

const ORDERS: [Compare; 8] = [
    apk::compare,
    composer::compare,
    dpkg::compare,
    maven::compare,
    python::compare,
    rpm::compare,
    semantic::compare,
    semantic::compare_go,
];

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(purl) = Purl::parse(text) {
        let written = purl.to_string();
        let again = Purl::parse(&written).expect("what is written can be read");
        assert_eq!(again.to_string(), written);
        let _ = purl.package();
    }
    let mut parts = text.splitn(3, '\n');
    let (Some(left), Some(right)) = (parts.next(), parts.next()) else {
        return;
    };
    for compare in ORDERS {
        let order = compare(left, right);
        assert_eq!(order.map(std::cmp::Ordering::reverse), compare(right, left));
        if order.is_some() {
            assert_eq!(compare(left, left), Some(std::cmp::Ordering::Equal));
        }
        if let Some(range) = parts.clone().next().and_then(Range::parse) {
            let _ = range.contains(left, compare);
        }
    }
    let _ = parts.next().map(Range::ends_in);
}
