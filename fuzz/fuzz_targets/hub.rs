//! VEX hubs: manifests, and archives with their indexes, are read to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_scan::purl::Purl;
use muster_scan::vex::Statements;
use muster_scan::vex::hub::{Hub, key, locations};

fuzz_target!(|bytes: &[u8]| {
    let _ = locations(bytes);
    if let Ok(hub) = Hub::open(bytes.to_vec(), "") {
        let keys = Purl::parse("pkg:npm/a@1").iter().map(key).collect();
        let _ = hub.collect(&keys, "fuzz", &mut Statements::new("fuzz"));
    }
});
