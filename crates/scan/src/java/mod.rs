//! Java archives: each says by `pom.properties` which Maven artefacts are in it, and archives lie
//! within archives. All of it is read in memory, within a budget that is shared by all of them.

pub(crate) mod zip;

use crate::package::{Package, Reading};
use zip::Archive;

/// Archives within archives, and no deeper.
const MAX_NESTING: usize = 4;
/// Bytes that may be inflated from one file of the image, whatever is nested in it.
const MAX_INFLATED: u64 = 256 * 1024 * 1024;
/// A properties file or a manifest.
const MAX_TEXT: u64 = 1024 * 1024;
/// Packages that one archive may declare.
const MAX_PACKAGES: usize = 20_000;

/// Whether a file is a Java archive, by its name.
pub(crate) fn is_archive(name: &str) -> bool {
    let (_, ending) = name.rsplit_once('.').unwrap_or_default();
    ["jar", "war", "ear", "par"]
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known))
}

/// Reads an archive and those within it.
pub fn archive(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let mut budget = MAX_INFLATED;
    read(contents, 0, &mut budget, &mut reading);
    reading.packages.sort();
    reading.packages.dedup();
    reading
}

fn read(contents: &[u8], nesting: usize, budget: &mut u64, reading: &mut Reading) {
    let archive = match Archive::open(contents) {
        Ok(archive) => archive,
        Err(problem) => return reading.problems.push(problem.into()),
    };
    let mut manifest = None;
    let before = reading.packages.len();
    for entry in archive.entries() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(problem) => return reading.problems.push(problem.into()),
        };
        let name = String::from_utf8_lossy(entry.name).into_owned();
        let is_text = name.ends_with("/pom.properties") || name == "META-INF/MANIFEST.MF";
        if !is_text && !is_archive(&name) {
            continue;
        }
        let limit = if is_text { MAX_TEXT } else { *budget };
        let body = match archive.contents(&entry, limit.min(*budget)) {
            Ok(body) => body,
            Err(problem) => {
                reading.problems.push(format!("{name}: {problem}"));
                continue;
            }
        };
        // What was inflated is spent, even if it is given back: time is bounded, too.
        *budget = budget.saturating_sub(body.len() as u64);
        if reading.packages.len() > MAX_PACKAGES {
            let problem = format!("more than {MAX_PACKAGES} packages in an archive");
            return reading.problems.push(problem);
        }
        if name.ends_with("/pom.properties") {
            reading.packages.extend(properties(&body));
        } else if is_text {
            manifest = Some(body);
        } else if nesting < MAX_NESTING {
            read(&body, nesting + 1, budget, reading);
        } else {
            let problem = format!("{name}: more than {MAX_NESTING} archives within each other");
            reading.problems.push(problem);
        }
    }
    if reading.packages.len() == before {
        let stated = manifest.and_then(|manifest| stated(&manifest));
        reading.packages.extend(stated);
    }
}

/// `groupId`, `artifactId` and `version` of a properties file.
fn properties(contents: &[u8]) -> Option<Package> {
    let text = String::from_utf8_lossy(contents);
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(name, _)| name.trim() == key)?.1.trim();
        (!found.is_empty()).then_some(found)
    };
    let name = format!("{}:{}", value("groupId")?, value("artifactId")?);
    Some(Package::new(name, value("version")?))
}

/// What a manifest states in the terms of Maven, for archives that were built without it.
fn stated(contents: &[u8]) -> Option<Package> {
    // Long lines go on after a space.
    let text = String::from_utf8_lossy(contents);
    let text = text.replace("\r\n", "\n").replace("\n ", "");
    let main = text.split("\n\n").next().unwrap_or_default();
    let value = |key: &str| {
        let mut lines = main.lines().filter_map(|line| line.split_once(": "));
        let found = lines
            .find(|(name, _)| name.eq_ignore_ascii_case(key))?
            .1
            .trim();
        (!found.is_empty() && !found.contains(' ')).then_some(found)
    };
    let name = format!(
        "{}:{}",
        value("Implementation-Vendor-Id")?,
        value("Implementation-Title")?
    );
    Some(Package::new(name, value("Implementation-Version")?))
}

#[cfg(test)]
mod tests {
    use super::zip::tests::{Method, archive as zipped};
    use super::*;

    fn pom(name: &str) -> Vec<u8> {
        format!("#comment\ngroupId=org.example\nartifactId={name}\nversion=1.2\n").into_bytes()
    }

    #[test]
    fn artefacts_are_found_in_nested_archives() {
        let place = |name: &str| format!("META-INF/maven/org.example/{name}/pom.properties");
        let inner = zipped(&[(&place("inner"), &pom("inner"), Method::Deflated)]);
        let middle = zipped(&[("x/inner.JAR", &inner, Method::Stored)]);
        let outer = zipped(&[
            (&place("outer"), &pom("outer"), Method::Deflated),
            (&place("shaded"), &pom("shaded"), Method::Stored),
            ("BOOT-INF/lib/middle.jar", &middle, Method::Deflated),
            ("a.class", b"x", Method::Stored),
        ]);
        let reading = archive(&outer);
        let names: Vec<_> = reading
            .packages
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "org.example:inner",
                "org.example:outer",
                "org.example:shaded"
            ]
        );
        assert!(reading.problems.is_empty());
    }

    #[test]
    fn a_manifest_speaks_where_nothing_else_does() {
        let manifest = b"Manifest-Version: 1.0\r\nImplementation-Title: thing\r\nImplementation-Vendor-Id: org.exam\r\n ple\r\nImplementation-Version: 3\r\n\r\nName: x\r\n";
        let reading = archive(&zipped(&[(
            "META-INF/MANIFEST.MF",
            manifest,
            Method::Deflated,
        )]));
        assert_eq!(reading.packages, [Package::new("org.example:thing", "3")]);
    }

    #[test]
    fn something_may_stand_in_front_of_an_archive() {
        let whole = zipped(&[(
            "META-INF/maven/a/a/pom.properties",
            &pom("a"),
            Method::Deflated,
        )]);
        let mut started = b"#!/bin/sh\nexec java -jar $0\n".to_vec();
        started.extend(whole);
        assert_eq!(
            archive(&started).packages,
            [Package::new("org.example:a", "1.2")]
        );
    }

    #[test]
    fn bombs_and_depths_are_borne() {
        let bomb = vec![0; 3 << 20];
        let reading = archive(&zipped(&[(
            "META-INF/MANIFEST.MF",
            &bomb,
            Method::Deflated,
        )]));
        assert_eq!(
            reading.problems,
            ["META-INF/MANIFEST.MF: more than 1048576 bytes"]
        );
        let mut nested = zipped(&[]);
        for _ in 0..6 {
            nested = zipped(&[("a.jar", &nested, Method::Stored)]);
        }
        assert_eq!(
            archive(&nested).problems,
            ["a.jar: more than 4 archives within each other"]
        );
        assert_eq!(archive(b"no archive").problems, ["no zip archive"]);
    }

    #[test]
    fn damaged_archives_never_panic() {
        let whole = zipped(&[("a/pom.properties", &pom("a"), Method::Deflated)]);
        for place in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] = value;
                drop(archive(&damaged));
            }
            drop(archive(&whole[..place]));
        }
    }
}
