//! bbolt files: whatever the bytes are, every walk and look-up ends.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("bolt", bytes));
