//! Paths inside an image: relative to its root, without dots, compared as text; and sets of them,
//! kept as numbers so that a layer of a million files is remembered in a few megabytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

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

/// The directories above a path, outermost first.
pub(crate) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
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
        self.0.binary_search(&number(path)).is_ok()
    }

    pub(crate) fn contains_any(&self, numbers: &[u64]) -> bool {
        !self.0.is_empty()
            && numbers
                .iter()
                .any(|number| self.0.binary_search(number).is_ok())
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

/// What an upper layer must have to hide the file at `path`: something of that name, be it a file
/// or a directory, or a file where one of the directories above was.
pub(crate) fn hidden_by(path: &str) -> Vec<u64> {
    let directory = format!("{path}/");
    above(path)
        .chain([path, directory.as_str()])
        .map(number)
        .collect()
}

/// The start of the path's SHA-256: two paths that share it would have to be looked for.
fn number(path: &str) -> u64 {
    let hash = Sha256::digest(path.as_bytes());
    hash.iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
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
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
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
