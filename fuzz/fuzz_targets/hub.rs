//! VEX hubs: manifests, and archives with their indexes, are read to an end.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("hub", bytes));
