//! A slice of fuzzing that is the same every time: each honest input and what becomes of it when
//! bytes are lost, doubled, moved or changed.

use muster_fuzzed::TARGETS;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often each honest input is spoiled.
const ROUNDS: u64 = 30_000;
/// What one input may take, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let files = fs::read_dir(place.join(target));
    let files = files.unwrap_or_else(|error| panic!("the honest inputs of {target}: {error}"));
    let mut seeds: Vec<_> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let bytes = fs::read(&path).expect("its bytes");
            (path, bytes)
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{target} has no honest input");
    seeds
}

/// Numbers that look drawn by lot and are the same every time.
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// What is left of an honest input.
fn spoiled(honest: &[u8], round: u64) -> Vec<u8> {
    let mut lot = Lot(round);
    let mut bytes = honest.to_vec();
    for _ in 0..=lot.below(4) {
        if bytes.is_empty() {
            break;
        }
        let from = lot.below(bytes.len());
        let length = 1 + lot.below(16.min(bytes.len() - from));
        match lot.below(7) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..from + length)),
            2 => {
                let doubled = bytes[from..from + length].to_vec();
                bytes.splice(from..from, doubled);
            }
            3 => bytes[from] ^= 1 << lot.below(8),
            4 => bytes[from] = [0, 0xff, 0x7f, 0x80, b'"', b'0', b'9', b'-'][lot.below(8)],
            5 => {
                let to = lot.below(bytes.len());
                bytes.swap(from, to);
            }
            _ => bytes[from..from + length].fill(0xff),
        }
    }
    bytes
}

#[test]
fn nothing_that_is_read_breaks_its_reader() {
    for (target, run) in TARGETS {
        for (path, honest) in seeds(target) {
            for round in 0..ROUNDS {
                // The first is the honest one itself.
                let bytes = match round {
                    0 => honest.clone(),
                    round => spoiled(&honest, round),
                };
                let start = Instant::now();
                let held = catch_unwind(AssertUnwindSafe(|| run(&bytes)));
                assert!(held.is_ok(), "{target}: {path:?} spoiled in round {round}");
                let taken = start.elapsed();
                assert!(
                    taken < PATIENCE,
                    "{target}: {path:?}, round {round}: {taken:?}"
                );
            }
        }
    }
}

#[test]
fn every_target_is_fuzzed() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = fs::read_dir(place).unwrap();
    let mut files: Vec<String> = files
        .map(|file| file.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, targets);
}
