//! The reader against files that the real Go library wrote, whole and damaged.

// What is made here is known to fit; the strict lints are for what reads unknown bytes.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used
)]

use muster_bolt::{Bolt, Bucket, Entry, Error};
use muster_testkit::bolt::{Put, write};
use std::collections::BTreeMap;

/// A small generator with a fixed seed, so that every run tests the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Flat buckets with many keys, nested ones, inline ones, empty ones and values of many pages.
fn puts() -> Vec<Put> {
    let mut random = Random(0x5eed);
    let mut puts = vec![Put {
        path: vec![b"empty".to_vec()],
        entry: None,
    }];
    let mut put = |path: Vec<Vec<u8>>, key: Vec<u8>, value: Vec<u8>| {
        puts.push(Put {
            path,
            entry: Some((key, value)),
        });
    };
    for number in 0..20_000 {
        let size = random.below(200);
        let value = random.bytes(size);
        let key = format!("CVE-{}-{number:05}", 2000 + number % 25).into_bytes();
        put(vec![b"vulnerability".to_vec()], key, value);
    }
    for package in 0..500 {
        let path = vec![b"debian 12".to_vec(), format!("pkg{package}").into_bytes()];
        for _ in 0..1 + random.below(30) {
            let key = random.bytes(12);
            let size = random.below(80);
            put(path.clone(), key, random.bytes(size));
        }
    }
    for size in [0, 1, 4_000, 4_096, 70_000, 1_000_000] {
        let key = format!("size {size}").into_bytes();
        put(vec![b"large".to_vec()], key, random.bytes(size));
    }
    put(
        vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"d".to_vec()],
        b"deep".to_vec(),
        b"down".to_vec(),
    );
    puts
}

type Contents = BTreeMap<Vec<Vec<u8>>, BTreeMap<Vec<u8>, Vec<u8>>>;

fn expected(puts: &[Put]) -> Contents {
    let mut contents = Contents::new();
    for put in puts {
        for length in 1..=put.path.len() {
            contents.entry(put.path[..length].to_vec()).or_default();
        }
        if let Some((key, value)) = &put.entry {
            let bucket = contents.entry(put.path.clone()).or_default();
            bucket.insert(key.clone(), value.clone());
        }
    }
    contents
}

fn walk(bucket: Bucket, path: &mut Vec<Vec<u8>>, contents: &mut Contents) -> Result<(), Error> {
    for item in bucket.iter() {
        let (key, entry) = item?;
        match entry {
            Entry::Value(value) => {
                let bucket = contents.entry(path.clone()).or_default();
                bucket.insert(key.to_vec(), value.to_vec());
            }
            Entry::Bucket(inner) => {
                path.push(key.to_vec());
                contents.entry(path.clone()).or_default();
                walk(inner, path, contents)?;
                path.pop();
            }
        }
    }
    Ok(())
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("test.db");
    write(&file, &puts()).unwrap();
    (directory, file)
}

#[test]
fn every_key_that_the_go_library_wrote_is_read() {
    let (_directory, file) = file();
    let puts = puts();
    let database = Bolt::open(&file).unwrap();
    let expected = expected(&puts);

    let mut walked = Contents::new();
    walk(database.root(), &mut Vec::new(), &mut walked).unwrap();
    assert!(walked == expected, "the walk differs");

    for (path, entries) in &expected {
        let path: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        let bucket = database.bucket(&path).unwrap().unwrap();
        for (key, value) in entries {
            assert_eq!(bucket.get(key).unwrap(), Some(value.as_slice()));
            let mut longer = key.clone();
            longer.push(0);
            let next = entries.range(longer.clone()..).next();
            assert_eq!(
                bucket.get(&longer).unwrap().is_some(),
                next.is_some_and(|(k, _)| *k == longer)
            );
            let found = bucket.seek(&longer).next().transpose().unwrap();
            match (found, next) {
                (Some((found, _)), Some((expected, _))) => assert_eq!(found, expected.as_slice()),
                (None, None) => {}
                (found, next) => assert_eq!(found.is_some(), next.is_some(), "{longer:?}"),
            }
        }
    }
}

#[test]
fn a_missing_key_or_bucket_is_nothing_and_no_error() {
    let (_directory, file) = file();
    let database = Bolt::open(&file).unwrap();
    assert!(database.bucket(&[b"nothing"]).unwrap().is_none());
    assert!(
        database
            .bucket(&[b"debian 12", b"nothing"])
            .unwrap()
            .is_none()
    );
    let bucket = database.bucket(&[b"vulnerability"]).unwrap().unwrap();
    for key in [&b""[..], b"A", b"CVE-2001-99999", b"zzz"] {
        assert_eq!(bucket.get(key).unwrap(), None);
    }
    assert!(bucket.seek(b"zzz").next().is_none());
    assert!(database.root().get(b"vulnerability").unwrap().is_none());
}

#[test]
fn damaged_files_give_errors_or_other_answers_but_never_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("small.db");
    let puts: Vec<Put> = puts().into_iter().step_by(23).collect();
    write(&file, &puts).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut random = Random(0xdead_beef);
    for round in 0..600 {
        let mut bytes = whole.clone();
        if round % 5 == 0 {
            bytes.truncate(random.below(whole.len()));
        }
        // Headers and element tables are where damage matters, so most of it goes there.
        for _ in 0..1 + random.below(40) {
            if bytes.len() < 4096 {
                break;
            }
            let page = random.below(bytes.len() / 4096) * 4096;
            let offset = if random.below(4) == 0 {
                random.below(4096)
            } else {
                random.below(256)
            };
            // The meta pages stay, else there is nothing to read.
            if page >= 8192 {
                bytes[page + offset] = random.next() as u8;
            }
        }
        if let Ok(database) = Bolt::from_bytes(bytes) {
            let _ = walk(database.root(), &mut Vec::new(), &mut Contents::new());
            for put in puts.iter().step_by(7) {
                let path: Vec<&[u8]> = put.path.iter().map(Vec::as_slice).collect();
                if let (Ok(Some(bucket)), Some((key, _))) = (database.bucket(&path), &put.entry) {
                    let _ = bucket.get(key);
                    let _ = bucket.seek(key).take(10).count();
                }
            }
        }
    }
}

/// A hand-made file: two meta pages and then the given pages.
fn made(pages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = vec![0; 8192];
    let record = &mut file[16..];
    record[..4].copy_from_slice(&0xED0C_DAED_u32.to_le_bytes());
    record[4..8].copy_from_slice(&2_u32.to_le_bytes());
    record[8..12].copy_from_slice(&4096_u32.to_le_bytes());
    record[16..24].copy_from_slice(&2_u64.to_le_bytes());
    let sum = record[..56]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    record[56..64].copy_from_slice(&sum.to_le_bytes());
    for page in pages {
        let mut page = page.clone();
        page.resize(4096, 0);
        file.extend(page);
    }
    file
}

fn header(number: u64, flags: u16, count: u16, overflow: u32) -> Vec<u8> {
    let mut page = number.to_le_bytes().to_vec();
    page.extend(flags.to_le_bytes());
    page.extend(count.to_le_bytes());
    page.extend(overflow.to_le_bytes());
    page
}

fn branch(number: u64, children: &[u64]) -> Vec<u8> {
    let mut page = header(number, 1, children.len() as u16, 0);
    for child in children {
        page.extend(16_u32.to_le_bytes());
        page.extend(0_u32.to_le_bytes());
        page.extend(child.to_le_bytes());
    }
    page
}

#[test]
fn a_tree_that_leads_in_a_circle_ends() {
    let mut loops = vec![
        vec![branch(2, &[2])],
        vec![branch(2, &[3, 3]), branch(3, &[2, 2])],
    ];
    // Every page leads to the next one 200 times: small, without a circle, and endless to walk.
    let mut wide: Vec<_> = (2..40).map(|page| branch(page, &[page + 1; 200])).collect();
    wide.push(header(40, 2, 0, 0));
    loops.push(wide);
    // A bucket whose tree is the one it lies in.
    let mut leaf = header(2, 2, 1, 0);
    for field in [1_u32, 16, 1, 16] {
        leaf.extend(field.to_le_bytes());
    }
    leaf.push(b'k');
    leaf.extend(2_u64.to_le_bytes());
    leaf.extend(0_u64.to_le_bytes());
    loops.push(vec![leaf]);
    for pages in loops {
        let database = Bolt::from_bytes(made(&pages)).unwrap();
        let walked = walk(database.root(), &mut Vec::new(), &mut Contents::new());
        assert!(walked.is_err(), "{pages:?}");
    }
}

#[test]
fn pages_that_lie_about_themselves_are_named() {
    for (page, problem) in [
        (header(3, 2, 0, 0), "it calls itself by another number"),
        (header(2, 2, 0, 9), "its overflow lies outside the file"),
        (header(2, 16, 0, 0), "it is neither a branch nor a leaf"),
        (header(2, 1, 0, 0), "it is a branch without children"),
        (header(2, 2, 300, 0), "it is shorter than its header says"),
        (branch(2, &[77]), "it lies outside the file"),
    ] {
        let database = Bolt::from_bytes(made(&[page])).unwrap();
        let error = database
            .root()
            .iter()
            .next()
            .unwrap()
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(problem), "{error}");
    }
    assert!(matches!(
        Bolt::from_bytes(vec![7; 9000]),
        Err(Error::NoMeta)
    ));
}
