//! Paths inside an image: relative to its root, without dots, compared as text; and sets of them,
//! kept as numbers so that a layer of a million files is remembered in a few megabytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

/// The path without leading slashes and dots; nothing where it leads out of the root. The root
/// itself is the empty path.
pub(crate) fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Where a symbolic link at `path` leads, below the root; nothing where it leads out of it.
pub(crate) fn target(path: &str, link: &str) -> Option<String> {
    if link.starts_with('/') {
        return normal(link);
    }
    let (parent, _) = path.rsplit_once('/').unwrap_or(("", path));
    normal(&format!("{parent}/{link}"))
}

/// A set of paths that can be asked, but not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSet(Vec<u64>);

impl PathSet {
    pub(crate) fn insert(&mut self, path: &str) {
        self.0.push(number(path));
    }

    /// Must be called once, after the last insertion and before the first question.
    pub(crate) fn seal(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
        self.0.shrink_to_fit();
    }

    /// Whether the path is in the set.
    pub fn contains(&self, path: &str) -> bool {
        self.has(number(path))
    }

    pub(crate) fn contains_any(&self, numbers: &[u64]) -> bool {
        !self.0.is_empty() && numbers.iter().any(|number| self.has(*number))
    }

    fn has(&self, number: u64) -> bool {
        #[cfg(test)]
        count_look();
        self.0.binary_search(&number).is_ok()
    }

    /// Those of some paths that are in one of the sets at least. Every number of every set is looked
    /// up once.
    pub(crate) fn in_any<'p>(paths: impl Iterator<Item = &'p str>, sets: &[&PathSet]) -> PathSet {
        let paths: HashSet<u64> = paths.map(number).collect();
        let numbers = sets.iter().flat_map(|set| &set.0).copied();
        let is_asked = |number: &u64| {
            #[cfg(test)]
            count_look();
            paths.contains(number)
        };
        let mut found = PathSet(numbers.filter(is_asked).collect());
        found.seal();
        found
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What an upper layer must have to hide the file at `path`: a file where one of the directories above
/// was, outermost first, then something of that name, be it a file or a directory.
pub(crate) fn hidden_by(path: &str) -> Vec<u64> {
    let mut hasher = Sha256::new();
    let mut numbers: Vec<u64> = path
        .split_inclusive('/')
        .map(|part| {
            hasher.update(part.strip_suffix('/').unwrap_or(part).as_bytes());
            let number = start(&hasher.clone().finalize());
            hasher.update(b"/");
            number
        })
        .collect();
    numbers.push(start(&hasher.finalize()));
    numbers
}

/// The start of the path's SHA-256: two paths that share it would have to be looked for.
fn number(path: &str) -> u64 {
    start(&Sha256::digest(path.as_bytes()))
}

fn start(hash: &[u8]) -> u64 {
    let first = hash.iter().take(8);
    first.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
thread_local! {
    /// How often a set was asked for a number.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_look() {
    LOOKS.set(LOOKS.get() + 1);
}

impl Serialize for PathSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|path| path.to_be_bytes()).collect();
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for PathSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(D::Error::custom)?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(D::Error::custom("a set of paths is cut off"));
        }
        let mut set = PathSet(
            numbers
                .iter()
                .map(|path| u64::from_be_bytes(*path))
                .collect(),
        );
        set.seal();
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_one_form_and_stay_below_the_root() {
        for (written, path) in [
            ("./a/b", Some("a/b")),
            ("/a//b/", Some("a/b")),
            ("a/./../b", Some("b")),
            (".", Some("")),
            ("..", None),
            ("a/../../b", None),
        ] {
            assert_eq!(normal(written).as_deref(), path, "{written}");
        }
    }

    #[test]
    fn links_lead_from_where_they_are() {
        for (path, link, leads) in [
            ("lib", "usr/lib", Some("usr/lib")),
            (
                "etc/os-release",
                "../usr/lib/os-release",
                Some("usr/lib/os-release"),
            ),
            ("var/run", "/run", Some("run")),
            ("a", "../../b", None),
        ] {
            assert_eq!(target(path, link).as_deref(), leads, "{path}");
        }
    }

    #[test]
    fn a_file_is_hidden_by_its_path_and_by_files_in_the_place_of_its_directories() {
        for (path, hiding) in [
            ("a/bc/d", &["a", "a/bc", "a/bc/d", "a/bc/d/"][..]),
            ("a", &["a", "a/"]),
        ] {
            let numbers: Vec<u64> = hiding.iter().map(|path| number(path)).collect();
            assert_eq!(hidden_by(path), numbers, "{path}");
        }
    }

    #[test]
    fn paths_are_found_in_any_of_several_sets() {
        let set = |paths: &[&str]| {
            let mut set = PathSet::default();
            paths.iter().for_each(|path| set.insert(path));
            set.seal();
            set
        };
        let (first, second) = (set(&["a", "b"]), set(&["b", "c"]));
        let found = PathSet::in_any(["b", "c", "d"].into_iter(), &[&first, &second]);
        assert_eq!(found, set(&["b", "c"]));
    }

    #[test]
    fn a_set_of_paths_survives_being_written() {
        let mut set = PathSet::default();
        for path in ["b", "a", "b"] {
            set.insert(path);
        }
        set.seal();
        let text = serde_json::to_string(&set).unwrap();
        let read: PathSet = serde_json::from_str(&text).unwrap();
        assert_eq!(read, set);
        assert!(read.contains("a") && read.contains("b") && !read.contains("c"));
        assert_eq!(read.len(), 2);
        assert!(serde_json::from_str::<PathSet>("\"AAAA\"").is_err());
    }
}
