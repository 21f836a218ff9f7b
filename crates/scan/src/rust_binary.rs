//! What a Rust program says of itself: `cargo auditable` compresses a list of crates into it. The
//! list lies in a section of its own, but the table of sections comes at the end of a file that
//! passes only once. So the list itself is looked for: the start of a compressed stream that begins
//! as every such list does. That takes a few hundred bytes of memory until the list is found, and
//! works alike for every format of program.

use crate::package::{Package, Reading};
use flate2::{Decompress, FlushDecompress, Status};
use serde::Deserialize;
use std::io::{self, Read};

/// How every list begins.
const START: &[u8] = br#"{"packages":["#;
/// Compressed bytes that suffice to tell: the largest table of codes, and the start in the longest.
const LOOK: usize = 512;
/// Bytes of a list, decompressed.
const MAX_LIST: usize = 8 * 1024 * 1024;
/// Starts that are tried in any program, and bytes that must pass for each further one. By chance
/// there is one in sixteen times as many.
const TRIES: u64 = 1000;
const BYTES_FOR_A_TRY: u64 = 1024;
/// The first byte of a zlib stream, and the second for each level of compression.
const FIRST: u8 = 0x78;
const SECOND: [u8; 4] = [0x01, 0x5e, 0x9c, 0xda];

/// Passes a program on, and looks at it in passing.
pub(crate) struct Watch<R> {
    program: R,
    state: State,
    /// Bytes that passed, and starts that were tried among them.
    passed: u64,
    tried: u64,
    problem: Option<&'static str>,
}

enum State {
    /// Bytes that may be the start of a list, once more of them are there.
    Searching(Vec<u8>),
    /// The list so far.
    Inside(Box<Decompress>, Vec<u8>),
    Found(Vec<u8>),
}

impl<R: Read> Watch<R> {
    pub fn new(program: R) -> Self {
        Watch {
            program,
            state: State::Searching(Vec::new()),
            passed: 0,
            tried: 0,
            problem: None,
        }
    }

    /// What was found, once all has passed.
    pub fn finish(mut self) -> Reading {
        if let State::Searching(window) = &mut self.state {
            // So near to the end nothing more will come.
            let window = std::mem::take(window);
            self.search(window, 0);
        }
        let mut reading = match &self.state {
            State::Found(list) => packages(list),
            State::Searching(_) => Reading::default(),
            State::Inside(..) => {
                self.problem = Some("the list of crates is cut off");
                Reading::default()
            }
        };
        reading.problems.extend(self.problem.map(Into::into));
        reading
    }

    fn see(&mut self, bytes: &[u8]) {
        self.passed += bytes.len() as u64;
        match &mut self.state {
            State::Found(_) => {}
            State::Inside(..) => self.inflate(bytes),
            State::Searching(window) => {
                let mut window = std::mem::take(window);
                window.extend_from_slice(bytes);
                self.search(window, LOOK);
            }
        }
    }

    /// Looks for the start of a list that has so many bytes behind it; keeps what is yet too short.
    fn search(&mut self, mut window: Vec<u8>, look: usize) {
        let mut from = 0;
        while let Some(at) = memchr::memchr(FIRST, &window[from..]).map(|at| from + at) {
            let rest = &window[at..];
            if rest.len() < look.max(2) {
                window.drain(..at);
                self.state = State::Searching(window);
                return;
            }
            if !SECOND.contains(&rest[1]) {
                from = at + 1;
                continue;
            }
            self.tried += 1;
            if self.tried > TRIES + self.passed / BYTES_FOR_A_TRY {
                self.problem = Some("more likenesses of a list of crates than are looked at");
                break;
            }
            if is_start(&rest[..rest.len().min(LOOK)]) {
                let stream = Box::new(Decompress::new(true));
                self.state = State::Inside(stream, Vec::new());
                self.inflate(&window[at..]);
                return;
            }
            from = at + 1;
        }
        self.state = State::Searching(Vec::new());
    }

    fn inflate(&mut self, mut bytes: &[u8]) {
        let State::Inside(stream, list) = &mut self.state else {
            return;
        };
        loop {
            if list.len() == list.capacity() {
                list.reserve(64 * 1024);
            }
            let (read, written) = (stream.total_in(), stream.total_out());
            let status = stream.decompress_vec(bytes, list, FlushDecompress::None);
            let read = usize::try_from(stream.total_in() - read).unwrap_or(bytes.len());
            bytes = bytes.get(read..).unwrap_or_default();
            let problem = match status {
                Ok(Status::StreamEnd) => {
                    self.state = State::Found(std::mem::take(list));
                    return;
                }
                Ok(_) if list.len() > MAX_LIST => "the list of crates is longer than is read",
                Ok(_) if bytes.is_empty() && list.len() < list.capacity() => return,
                Ok(_) if read > 0 || stream.total_out() > written => continue,
                _ => "the list of crates is damaged",
            };
            self.problem = Some(problem);
            self.state = State::Searching(Vec::new());
            return;
        }
    }
}

impl<R: Read> Read for Watch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.program.read(buffer)?;
        self.see(&buffer[..length]);
        Ok(length)
    }
}

/// Whether these bytes decompress to the start of a list.
fn is_start(bytes: &[u8]) -> bool {
    let mut start = [0; START.len()];
    let mut stream = Decompress::new(true);
    // What comes out counts, even if the stream goes on, or breaks, behind it.
    let _ = stream.decompress(bytes, &mut start, FlushDecompress::None);
    stream.total_out() == START.len() as u64 && start == START
}

#[derive(Deserialize)]
struct List {
    packages: Vec<Crate>,
}

#[derive(Deserialize)]
struct Crate {
    name: String,
    version: String,
    /// `build` for what was needed only to build; the default is what runs.
    #[serde(default)]
    kind: Option<String>,
}

fn packages(list: &[u8]) -> Reading {
    let mut reading = Reading::default();
    match serde_json::from_slice::<List>(list) {
        Ok(list) => {
            let crates = list.packages.into_iter();
            let run = crates.filter(|one| one.kind.as_deref().is_none_or(|kind| kind == "runtime"));
            reading.packages = run.map(|one| Package::new(one.name, one.version)).collect();
        }
        Err(error) => reading
            .problems
            .push(format!("the list of crates: {error}")),
    }
    reading
}

/// Reads a program to its end.
pub fn read(program: impl Read) -> io::Result<Reading> {
    let mut watch = Watch::new(program);
    io::copy(&mut watch, &mut io::sink())?;
    Ok(watch.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIST: &str = r#"{"packages":[{"name":"app","version":"0.1.0","source":"local","root":true},
        {"name":"serde","version":"1.0.0","source":"crates.io","dependencies":[]},
        {"name":"cc","version":"1.2.0","source":"crates.io","kind":"build"}]}"#;

    fn compressed(text: &str, level: u32) -> Vec<u8> {
        let level = flate2::Compression::new(level);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// Yields so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (piece, rest) = self.0.split_at(length);
            buffer[..length].copy_from_slice(piece);
            self.0 = rest;
            Ok(length)
        }
    }

    #[test]
    fn a_list_is_found_wherever_it_lies() {
        let mut noise = 1_u32;
        for level in [0, 1, 6, 9] {
            for (before, after) in [(0, 0), (1, 10_000), (70_001, 5), (300, 600)] {
                // What looks like the start of a stream is none.
                let mut program: Vec<u8> = [FIRST, 0x9c].repeat(before.min(100));
                program.resize_with(before, || {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (noise >> 24) as u8
                });
                program.extend(compressed(LIST, level));
                program.extend(std::iter::repeat_n(FIRST, after));
                for piece in [7, 511, 100_000] {
                    let reading = read(Pieces(&program, piece)).unwrap();
                    let names = reading.packages.iter().map(|one| one.name.as_str());
                    let names: Vec<_> = names.collect();
                    assert_eq!(names, ["app", "serde"], "{level} {before} {after} {piece}");
                    assert!(reading.problems.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_program_of_likenesses_costs_no_more_than_it_may() {
        let program = [FIRST, 0x9c].repeat(1 << 20);
        let mut watch = Watch::new(program.as_slice());
        io::copy(&mut watch, &mut io::sink()).unwrap();
        assert!(watch.tried <= 2 * TRIES + watch.passed / BYTES_FOR_A_TRY * 2);
        let problem = "more likenesses of a list of crates than are looked at";
        assert_eq!(watch.finish().problems, [problem]);
    }

    #[test]
    fn what_is_no_list_is_nothing_and_a_broken_one_is_noted() {
        for bytes in [
            &b""[..],
            b"x",
            b"x\x9c",
            &[FIRST; 5000],
            &compressed("other", 6),
        ] {
            assert_eq!(read(bytes).unwrap(), Reading::default());
        }
        let whole = compressed(LIST, 6);
        let cut = &whole[..whole.len() - 10];
        assert_eq!(
            read(cut).unwrap().problems,
            ["the list of crates is cut off"]
        );
        let mut damaged = whole.clone();
        let end = damaged.len() - 1;
        damaged[end] ^= 1;
        assert_eq!(
            read(damaged.as_slice()).unwrap().problems,
            ["the list of crates is damaged"]
        );
        let nonsense = compressed(r#"{"packages":[1]}"#, 6);
        assert_eq!(read(nonsense.as_slice()).unwrap().problems.len(), 1);
        let bomb = compressed(&format!("{{\"packages\":[{}", " ".repeat(MAX_LIST * 4)), 9);
        assert_eq!(
            read(bomb.as_slice()).unwrap().problems,
            ["the list of crates is longer than is read"]
        );
    }
}
