//! The parsers of package databases: the first byte chooses one, the rest is its file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("packages", bytes));
