//! Which files an archive holds, and where: the archive is walked once, leaping from header to
//! header, and afterwards each file is read from its place. Names are only ever compared, never
//! opened, so that it does not matter where they would lead.

use muster_scan::layer::TarError;
use muster_scan::layer::tar::{Kind, Tar};
use muster_scan::limits::Limits;
use std::collections::BTreeMap;
use std::io::{BufRead, Seek};

/// An archive of images has a few files for each layer; nothing that has more is one.
const ENTRIES: u64 = 100_000;
/// How many links are followed from one file to another.
const LINKS: usize = 8;

/// What is borne of an archive that holds images.
pub(crate) fn limits(limits: &Limits) -> Limits {
    Limits {
        entries: ENTRIES,
        path_bytes: 1024,
        ..*limits
    }
}

/// Where the files of an archive are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    files: BTreeMap<String, Section>,
    links: BTreeMap<String, String>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where it begins.
    pub start: u64,
    /// How many bytes it has.
    pub size: u64,
}

impl Index {
    /// Walks over a plain archive of `length` bytes.
    pub fn read(
        archive: impl BufRead + Seek,
        length: u64,
        borne: &Limits,
    ) -> Result<Index, TarError> {
        let borne = limits(borne);
        let mut index = Index::default();
        let mut tar = Tar::new(archive, &borne);
        let mut number = 0;
        while let Some(entry) = tar.next()? {
            number += 1;
            let start = tar.leap()?;
            let Some(path) = entry.path.filter(|path| !path.is_empty()) else {
                continue;
            };
            match entry.kind {
                Kind::File if start.checked_add(entry.size).is_none_or(|end| end > length) => {
                    return Err(TarError::Header {
                        entry: number,
                        problem: "the archive ends inside its contents",
                    });
                }
                Kind::File if !entry.sparse => {
                    let size = entry.size;
                    index.links.remove(&path);
                    index.files.insert(path, Section { start, size });
                }
                Kind::SymbolicLink | Kind::HardLink => {
                    index.link(&path, entry.kind, &entry.link);
                }
                _ => {}
            }
        }
        Ok(index)
    }

    fn link(&mut self, path: &str, kind: Kind, leads: &str) {
        if let Some(target) = target(path, kind, leads) {
            self.files.remove(path);
            self.links.insert(path.into(), target);
        }
    }

    /// Where a file is, through the links that old versions of Docker wrote for layers that occur
    /// twice.
    pub fn find(&self, name: &str) -> Option<Section> {
        let name = followed(&self.links, name)?;
        self.files.get(name).copied()
    }
}

/// Where a link of an archive leads, in the archive; nothing where it leads out of it.
pub(crate) fn target(path: &str, kind: Kind, leads: &str) -> Option<String> {
    let parent = match kind {
        Kind::SymbolicLink => path.rsplit_once('/').map_or("", |(parent, _)| parent),
        _ => "",
    };
    inside(&format!("{parent}/{leads}"))
}

/// A name of an archive in its one form; nothing where it leads out of it.
pub(crate) fn inside(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The name that is really meant; nothing where links lead in a circle.
pub(crate) fn followed<'a>(links: &'a BTreeMap<String, String>, name: &'a str) -> Option<&'a str> {
    let mut name = name;
    for _ in 0..LINKS {
        match links.get(name) {
            Some(next) => name = next,
            None => return Some(name),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_of_the_same_archive_or_nowhere() {
        let mut index = Index::default();
        let section = Section {
            start: 512,
            size: 1,
        };
        index.files.insert("a/layer.tar".into(), section);
        for (path, kind, leads, found) in [
            ("b/layer.tar", Kind::SymbolicLink, "../a/layer.tar", true),
            ("c/layer.tar", Kind::SymbolicLink, "/b/layer.tar", false),
            ("d/layer.tar", Kind::HardLink, "a/layer.tar", true),
            ("e/layer.tar", Kind::SymbolicLink, "../../etc/passwd", false),
            ("f/layer.tar", Kind::SymbolicLink, "../f/layer.tar", false),
            ("g/layer.tar", Kind::SymbolicLink, "../d/layer.tar", true),
        ] {
            index.link(path, kind, leads);
            assert_eq!(index.find(path), found.then_some(section), "{path}");
        }
        assert_eq!(inside("./a//b/."), Some("a/b".into()));
        assert_eq!(inside("a/../.."), None);
        assert_eq!(inside("/"), None);
    }
}
