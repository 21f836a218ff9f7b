//! The parsers of lockfiles: the first byte chooses one, the rest is its file and whatever lies
//! beside it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("lockfiles", bytes));
