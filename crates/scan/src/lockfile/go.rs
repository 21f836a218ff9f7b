//! `go.mod`: since Go 1.17 it lists every module of the build. Before, only those that are needed
//! directly; the rest follow from `go.sum`. The language version it states is the least that will
//! do and says nothing of the toolchain that builds, so no standard library is read from it.

use super::{Nearby, Read, package, text};
use crate::package::Reading;
use crate::version;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A replacement: `PATH [VERSION] => PATH [VERSION]`.
struct Replacement {
    old: (String, Option<String>),
    new: (String, Option<String>),
}

#[derive(Default)]
struct File {
    go: Option<(u32, u32)>,
    /// Version, and whether it is needed only by others.
    required: BTreeMap<String, (String, bool)>,
    replaced: Vec<Replacement>,
    excluded: BTreeSet<(String, String)>,
}

pub(super) fn read(contents: &[u8], near: &mut Nearby) -> Read {
    let file = parse(&text(contents));
    let is_old = file.go.is_none_or(|version| version < (1, 17));
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for (path, (version, indirect)) in &file.required {
        let is_excluded = file.excluded.contains(&(path.clone(), version.clone()));
        // Old files list some of the indirect modules; the sums know better.
        let is_for_the_sums = is_old && *indirect;
        if !is_excluded && !is_for_the_sums {
            modules.insert(path.clone(), version.clone());
        }
    }
    if is_old && let Some(sums) = near("go.sum") {
        for (path, version) in sums_of(&text(&sums)) {
            modules.entry(path).or_insert(version);
        }
    }
    let mut reading = Reading::default();
    for (path, version) in &modules {
        let replaced = file.replaced.iter().find(|one| {
            let is_version = one.old.1.as_ref().is_none_or(|old| old == version);
            one.old.0 == *path && is_version
        });
        match replaced.map(|one| &one.new) {
            None => reading.packages.push(package(path, version)),
            Some((path, Some(version))) => reading.packages.push(package(path, version)),
            // A directory of the project.
            Some((_, None)) => {}
        }
    }
    Ok(reading)
}

fn parse(text: &str) -> File {
    let mut file = File::default();
    let mut block = String::new();
    for line in text.lines() {
        let (line, comment) = line.split_once("//").unwrap_or((line, ""));
        let words: Vec<String> = line.split_ascii_whitespace().map(unquoted).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (verb, rest) = match words.as_slice() {
            [] => continue,
            [")"] => {
                block.clear();
                continue;
            }
            [verb, "("] => {
                block = (*verb).into();
                continue;
            }
            rest if !block.is_empty() => (block.as_str(), rest),
            [verb, rest @ ..] => (*verb, rest),
        };
        match (verb, rest) {
            ("go", [version]) => file.go = numbers(version),
            ("require", [path, version]) => {
                let indirect = comment.split(';').any(|one| one.trim() == "indirect");
                file.required
                    .insert((*path).into(), ((*version).into(), indirect));
            }
            ("exclude", [path, version]) => {
                file.excluded.insert(((*path).into(), (*version).into()));
            }
            ("replace", rest) => file.replaced.extend(replacement(rest)),
            _ => {}
        }
    }
    file
}

fn unquoted(word: &str) -> String {
    word.trim_matches(['"', '`']).to_owned()
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    let digits = |part: &str| {
        let end = part
            .find(|one: char| !one.is_ascii_digit())
            .unwrap_or(part.len());
        part[..end].parse().ok()
    };
    Some((
        digits(parts.next()?)?,
        parts.next().and_then(digits).unwrap_or(0),
    ))
}

fn replacement(words: &[&str]) -> Option<Replacement> {
    let arrow = words.iter().position(|word| *word == "=>")?;
    let side = |words: &[&str]| match words {
        [path] => Some(((*path).to_owned(), None)),
        [path, version] => Some(((*path).to_owned(), Some((*version).to_owned()))),
        _ => None,
    };
    Some(Replacement {
        old: side(&words[..arrow])?,
        new: side(&words[arrow + 1..])?,
    })
}

/// The newest version of each module whose contents, and not only its requirements, were loaded.
fn sums_of(text: &str) -> BTreeMap<String, String> {
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(path), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        if version.ends_with("/go.mod") {
            continue;
        }
        let known = modules.entry(path.into()).or_insert_with(|| version.into());
        if is_newer(version, known) {
            *known = version.into();
        }
    }
    modules
}

fn is_newer(version: &str, than: &str) -> bool {
    let number = |text: &str| text.trim_start_matches('v').to_owned();
    version::semantic::compare(&number(version), &number(than)) == Some(Ordering::Greater)
}
