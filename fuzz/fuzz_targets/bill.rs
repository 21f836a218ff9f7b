//! Bills of materials: what is read can be written, and then says the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("bill", bytes));
