//! Inventories of layers as somebody else kept them: refused, or kept again as the same bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("inventory", bytes));
