//! JSON bodies with opaque fields: what is read, written down and read back is the same object.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("parse", bytes));
