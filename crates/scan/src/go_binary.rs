//! What a Go program says of itself: the toolchain wrote the modules it was built from into the
//! file. The record is looked for while the file passes, so that a program of any size takes no
//! more memory than the record.

use crate::package::{Package, Reading};
use std::io::{self, Read};

const MAGIC: &[u8] = b"\xff Go buildinf:";
const ALIGNMENT: usize = 16;
/// Length of the record's header; two strings with their lengths follow it.
const HEADER: usize = 32;
/// The strings follow the header; before Go 1.18 there were addresses there.
const INLINE: u8 = 2;
const MAX_VERSION: usize = 1024;
const MAX_MODULES: usize = 4 * 1024 * 1024;
/// Marks that stand before and after the list of modules.
const MARK: usize = 16;
const CHUNK: usize = 64 * 1024;
const FORMATS: [&[u8]; 7] = [
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
];

/// Reads a program; nothing is found in what is no program or not one of Go's.
pub fn read(mut body: impl Read) -> io::Result<Reading> {
    let mut window = Vec::with_capacity(2 * CHUNK);
    fill(&mut body, &mut window, CHUNK)?;
    if !FORMATS.iter().any(|format| window.starts_with(format)) {
        return Ok(Reading::default());
    }
    let mut old = false;
    loop {
        let Some(start) = find(&window) else {
            // Chunks keep the alignment, and a record's first line is as long as that.
            let whole = window.len() / ALIGNMENT * ALIGNMENT;
            window.drain(..whole);
            if fill(&mut body, &mut window, CHUNK)? == 0 {
                break;
            }
            continue;
        };
        window.drain(..start);
        if window[15] & INLINE == 0 {
            old |= window[14] == 4 || window[14] == 8;
        } else if let Some(record) = record(&mut body, &mut window)? {
            return Ok(packages(&record));
        }
        // Only the likeness of a record, such as in a program that looks for them.
        window.drain(..ALIGNMENT);
    }
    let mut reading = Reading::default();
    if old {
        let problem = "a Go program from before Go 1.18, whose modules cannot be read";
        reading.problems.push(problem.into());
    }
    Ok(reading)
}

/// Reads on until the window has grown by that much or the file ends; says by how much it grew.
fn fill(body: &mut impl Read, window: &mut Vec<u8>, by: usize) -> io::Result<usize> {
    body.take(by as u64).read_to_end(window)
}

fn find(window: &[u8]) -> Option<usize> {
    window
        .chunks_exact(ALIGNMENT)
        .position(|line| line.starts_with(MAGIC))
        .map(|line| line * ALIGNMENT)
}

/// The version and the modules of the record at the start of the window.
fn record(body: &mut impl Read, window: &mut Vec<u8>) -> io::Result<Option<(String, String)>> {
    let mut place = HEADER;
    let Some(version) = string(body, window, &mut place, MAX_VERSION)? else {
        return Ok(None);
    };
    let Some(modules) = string(body, window, &mut place, MAX_MODULES)? else {
        return Ok(None);
    };
    if !version.starts_with(b"go") && !version.starts_with(b"devel") {
        return Ok(None);
    }
    let modules = match modules.len().checked_sub(MARK) {
        Some(end) if end > MARK && modules[end - 1] == b'\n' => modules[MARK..end].to_vec(),
        _ => Vec::new(),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some((text(version), text(modules))))
}

/// A string with its length before it, seven bits in each byte of it.
fn string(
    body: &mut impl Read,
    window: &mut Vec<u8>,
    place: &mut usize,
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0_usize;
    for shift in (0..35).step_by(7) {
        if !have(body, window, *place + 1)? {
            return Ok(None);
        }
        let byte = window[*place];
        *place += 1;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    if length > limit || !have(body, window, *place + length)? {
        return Ok(None);
    }
    let string = window[*place..*place + length].to_vec();
    *place += length;
    Ok(Some(string))
}

fn have(body: &mut impl Read, window: &mut Vec<u8>, length: usize) -> io::Result<bool> {
    // Whole chunks keep the alignment for a search that goes on.
    while window.len() < length {
        if fill(body, window, CHUNK)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The packages of a program: the standard library, the main module and what it depends on.
fn packages((version, modules): &(String, String)) -> Reading {
    let mut reading = Reading::default();
    let toolchain = version.split(' ').next().unwrap_or_default();
    let toolchain = toolchain.split("-X:").next().unwrap_or_default();
    if let Some(version) = toolchain.strip_prefix("go") {
        let version = format!("v{version}");
        reading.packages.push(Package::new("stdlib", version));
    }
    let mut main = None;
    let mut flags = "";
    for line in modules.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            ["mod", path, rest @ ..] => {
                main = Some(reading.packages.len());
                reading.packages.push(module(path, rest));
            }
            ["dep", path, rest @ ..] => reading.packages.push(module(path, rest)),
            // What stands in for the module of the line before.
            ["=>", path, rest @ ..] => {
                if let Some(last) = reading.packages.last_mut() {
                    *last = module(path, rest);
                }
            }
            ["build", setting] => {
                if let Some(value) = setting.strip_prefix("-ldflags=") {
                    flags = value;
                }
            }
            _ => {}
        }
    }
    if let Some(main) = main.and_then(|place| reading.packages.get_mut(place))
        && main.version.is_empty()
    {
        main.version = linked_version(flags).unwrap_or_default();
    }
    reading.packages.retain(|package| !package.name.is_empty());
    reading
}

fn module(path: &str, rest: &[&str]) -> Package {
    let version = rest.first().copied().unwrap_or_default();
    let version = if version == "(devel)" { "" } else { version };
    Package::new(path, version)
}

/// The version that the linker was told to put into a variable that is called so, if all such
/// variables agree.
fn linked_version(flags: &str) -> Option<String> {
    let unquoted = flags.replace(['"', '\''], " ");
    let mut words = unquoted.split_ascii_whitespace();
    let mut versions = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match word {
            "-X" => words.next()?,
            word => word.strip_prefix("-X=").unwrap_or_default(),
        };
        let Some((variable, value)) = assignment.split_once('=') else {
            continue;
        };
        let name = variable.rsplit('.').next().unwrap_or_default();
        let is_version = matches!(name.to_lowercase().as_str(), "version" | "ver");
        let number = value.trim_start_matches('v');
        if is_version
            && number.starts_with(|first: char| first.is_ascii_digit())
            && number.contains('.')
        {
            versions.push(format!("v{number}"));
        }
    }
    versions.dedup();
    match versions.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(padding: usize, version: &str, modules: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.resize(padding, 0);
        bytes.extend(MAGIC);
        bytes.extend([8, INLINE]);
        bytes.extend([0; 16]);
        for text in [
            version.as_bytes(),
            &[&[1; 16], modules.as_bytes(), &[2; 16]].concat(),
        ] {
            let mut length = text.len();
            while length >= 0x80 {
                bytes.push(length as u8 | 0x80);
                length >>= 7;
            }
            bytes.push(length as u8);
            bytes.extend(text);
        }
        bytes.extend([0; 100]);
        bytes
    }

    const MODULES: &str = "path\texample.org/app\nmod\texample.org/app\t(devel)\t\n\
        dep\tgithub.com/a/b\tv1.2.3\th1:x=\ndep\tgithub.com/old\tv1.0.0\th1:y=\n\
        =>\tgithub.com/new\tv2.0.0\th1:z=\nbuild\t-ldflags=-s -X main.version=1.4.2 -X 'x.y=z'\n";

    fn names(reading: &Reading) -> Vec<String> {
        let line = |one: &Package| format!("{}@{}", one.name, one.version);
        reading.packages.iter().map(line).collect()
    }

    #[test]
    fn modules_are_found_wherever_the_record_lies() {
        // Also across the ends of chunks.
        for padding in [16, CHUNK - 16, CHUNK - 32, CHUNK, 3 * CHUNK - 64] {
            let reading = read(program(padding, "go1.22.1 X:x", MODULES).as_slice()).unwrap();
            assert_eq!(
                names(&reading),
                [
                    "stdlib@v1.22.1",
                    "example.org/app@v1.4.2",
                    "github.com/a/b@v1.2.3",
                    "github.com/new@v2.0.0"
                ],
                "{padding}"
            );
        }
    }

    #[test]
    fn a_likeness_of_a_record_does_not_end_the_search() {
        let mut bytes = program(64, "no version", "mod\ta\tv1\n");
        bytes.resize(4096, 0);
        bytes.extend(&program(16, "go1.20", "dep\tb\tv2\n")[..]);
        assert_eq!(
            names(&read(bytes.as_slice()).unwrap()),
            ["stdlib@v1.20", "b@v2"]
        );
    }

    #[test]
    fn what_is_no_go_program_is_nothing_and_an_old_one_is_noted() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", &[0; 100]] {
            assert_eq!(read(bytes).unwrap(), Reading::default());
        }
        let mut old = program(16, "go1.17", "");
        old[16 + 15] = 0;
        assert_eq!(read(old.as_slice()).unwrap().problems.len(), 1);
    }

    #[test]
    fn the_linked_version_counts_if_it_is_plain() {
        for (flags, version) in [
            ("-X main.version=v1.2.3", Some("v1.2.3")),
            (
                "-s -w -X=k8s.io/x.Version=1.30.0 -X a.version=1.30.0",
                Some("v1.30.0"),
            ),
            ("-X a.version=1.0 -X b.version=2.0", None),
            ("-X main.version=main", None),
            ("-X", None),
        ] {
            assert_eq!(linked_version(flags).as_deref(), version, "{flags}");
        }
    }
}
