//! Merge patches: a document and a patch, parted by a NUL; a second time changes nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("merge_patch", bytes));
