//! VEX hubs: manifests, and archives with their indexes, are read to an end.

use muster_scan::purl::Purl;
use muster_scan::vex::Statements;
use muster_scan::vex::hub::{Hub, key, locations};

pub(crate) fn run(bytes: &[u8]) {
    let _ = locations(bytes);
    if let Ok(hub) = Hub::open(bytes.to_vec(), "") {
        let keys = Purl::parse("pkg:npm/a@1").iter().map(key).collect();
        let _ = hub.collect(&keys, "fuzz", &mut Statements::new("fuzz"));
    }
}
