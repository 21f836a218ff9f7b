//! Versions and ranges: an order is one, whichever way it is asked; URLs survive being written.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("versions", bytes));
