//! Server-side apply: a live object and a configuration, parted by a NUL. Forced, it has no
//! conflicts, and a second time changes nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| muster_fuzzed::run("apply", bytes));
