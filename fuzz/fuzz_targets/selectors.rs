//! Label and field selectors: whatever is parsed can be matched, and the same text means the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("selectors", bytes));
