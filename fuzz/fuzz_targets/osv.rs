//! OSV records and the files that are compiled of them: whatever the bytes are, compiling and
//! looking up end.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("osv", bytes));
