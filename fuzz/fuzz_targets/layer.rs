//! Layers: whatever the bytes are, reading them ends, and an inventory survives being kept.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("layer", bytes));
