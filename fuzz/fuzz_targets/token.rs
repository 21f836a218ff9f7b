//! Continue tokens: whatever comes back is refused, or is a token that comes back the same. The
//! file of the server is compiled as it stands, since its crate is too heavy to fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("token", bytes));
