//! VEX documents: reading and applying them ends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("vex", bytes));
