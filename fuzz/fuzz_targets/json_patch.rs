//! JSON patches: a document and a patch, parted by a NUL.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("json_patch", bytes));
