//! The walk over a layer's entries: what each of them means for the inventory. A file that cannot
//! be understood is noted and the walk goes on; only a broken archive ends it.

use super::LayerError;
use super::inventory::{ANALYZER_VERSION, Found, Incomplete, LayerInventory};
use super::path;
use super::tar::{Entry, Kind, Tar};
use super::wanted::{Wanted, leads_to_a_database, wanted};
use crate::limits::{Exceeded, Limits};
use crate::package::{Detector, Reading};
use crate::{
    apk, composer, dotnet, dpkg, embedded, go_binary, java, node, os, python, rpm, ruby,
    rust_binary,
};
use std::io::{BufRead, Read};

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";
/// Names that one union file system kept its own records under.
const RESERVED: &str = ".wh..wh.";

struct Walk<'a> {
    limits: &'a Limits,
    inventory: LayerInventory,
    /// Bytes of all remembered paths, and the number of packages.
    remembered: usize,
    packages: usize,
    /// Incomplete files beyond those that are spoken of.
    unspoken: usize,
}

/// Walks an archive to its end.
pub(super) fn walk<R: BufRead>(
    archive: R,
    limits: &Limits,
) -> Result<(LayerInventory, R), LayerError> {
    let mut tar = Tar::new(archive, limits);
    let mut walk = Walk {
        limits,
        inventory: LayerInventory {
            version: ANALYZER_VERSION,
            ..LayerInventory::default()
        },
        remembered: 0,
        packages: 0,
        unspoken: 0,
    };
    while let Some(entry) = tar.next()? {
        walk.entry(entry, &mut tar)?;
    }
    Ok((walk.finish(), tar.into_inner()))
}

impl Walk<'_> {
    fn entry<R: BufRead>(&mut self, entry: Entry, tar: &mut Tar<R>) -> Result<(), LayerError> {
        let Some(path) = entry.path.clone() else {
            self.incomplete("", "a path leads out of the image");
            return Ok(());
        };
        if path.is_empty() {
            return Ok(());
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name.starts_with(WHITEOUT) {
            return self.whiteout(parent, name);
        }
        match entry.kind {
            Kind::Directory => self.inventory.paths.insert(&format!("{path}/")),
            _ => self.inventory.paths.insert(&path),
        }
        // A later entry of the same path takes the place of the earlier one.
        self.inventory.links.remove(&path);
        self.inventory.files.remove(&path);
        match entry.kind {
            Kind::File => self.file(&path, &entry, tar),
            Kind::SymbolicLink if leads_to_a_database(&path) => {
                match path::target(&path, &entry.link) {
                    Some(target) => {
                        self.remember(path.len() + target.len())?;
                        self.inventory.links.insert(path, target);
                    }
                    None => self.incomplete(&path, "a symbolic link leads out of the image"),
                }
                Ok(())
            }
            Kind::HardLink => self.hard_link(&path, &entry),
            _ => Ok(()),
        }
    }

    fn whiteout(&mut self, parent: &str, name: &str) -> Result<(), LayerError> {
        if name == OPAQUE {
            self.remember(parent.len())?;
            self.inventory.opaque.insert(parent.into());
        } else if !name.starts_with(RESERVED) {
            let name = &name[WHITEOUT.len()..];
            let path = path::normal(&format!("{parent}/{name}"));
            if let Some(path) =
                path.filter(|path| !path.is_empty() && !matches!(name, "" | "." | ".."))
            {
                self.remember(path.len())?;
                self.inventory.whiteouts.insert(path);
            }
        }
        Ok(())
    }

    fn file<R: BufRead>(
        &mut self,
        path: &str,
        entry: &Entry,
        tar: &mut Tar<R>,
    ) -> Result<(), LayerError> {
        let Some(wanted) = wanted(path, entry.mode) else {
            return Ok(());
        };
        if wanted == Wanted::Executable {
            return self.executable(path, entry, tar);
        }
        let limit = wanted.limit(self.limits);
        if entry.sparse {
            self.incomplete(path, "the file is stored with holes");
            return Ok(());
        }
        if entry.size > limit {
            let reason = Exceeded::new("bytes in the file", limit).to_string();
            self.incomplete(path, &reason);
            return Ok(());
        }
        let mut body = Vec::with_capacity(entry.size as usize);
        tar.body().read_to_end(&mut body)?;
        let found = match wanted {
            Wanted::Os(file) => match os::read(file, path, &body) {
                Some(fact) => Found::Os(fact),
                None => Found::Nothing,
            },
            Wanted::DpkgStatus => self.packages(path, Detector::Dpkg, dpkg::status(&body)),
            Wanted::DpkgStatusOfOne => {
                self.packages(path, Detector::Dpkg, dpkg::status_of_one(&body))
            }
            Wanted::DpkgFiles => Found::Owned(dpkg::files(&body)),
            Wanted::DpkgCopyright => match dpkg::copyright::licence(&body) {
                Some(licence) => Found::Licence(licence),
                None => Found::Nothing,
            },
            Wanted::ApkInstalled => self.packages(path, Detector::Apk, apk::installed(&body)),
            Wanted::RpmDatabase => self.packages(path, Detector::Rpm, rpm::database(&body)),
            Wanted::NodePackage => {
                self.packages(path, Detector::NodePackage, node::package(path, &body))
            }
            Wanted::PythonPackage => {
                self.packages(path, Detector::PythonPackage, python::metadata(&body))
            }
            Wanted::PythonEgg => self.packages(path, Detector::PythonPackage, python::egg(&body)),
            Wanted::JavaArchive => self.packages(path, Detector::Jar, java::archive(&body)),
            Wanted::GemSpecification => {
                self.packages(path, Detector::Gemspec, ruby::specification(&body))
            }
            Wanted::ComposerInstalled => {
                self.packages(path, Detector::Composer, composer::installed(&body))
            }
            Wanted::DotnetDependencies => {
                self.packages(path, Detector::DotnetCore, dotnet::dependencies(&body))
            }
            Wanted::RpmManifest => self.packages(path, Detector::Rpm, rpm::manifest(&body)),
            Wanted::Bill => match embedded::read(&body) {
                Ok(stated) => Found::Stated(stated),
                Err(problem) => {
                    self.incomplete(path, &problem);
                    Found::Nothing
                }
            },
            Wanted::Executable => return Ok(()),
        };
        self.keep(path, found)
    }

    /// A program is read to its end but never kept: what it says of itself is found in passing.
    fn executable<R: BufRead>(
        &mut self,
        path: &str,
        entry: &Entry,
        tar: &mut Tar<R>,
    ) -> Result<(), LayerError> {
        if entry.sparse {
            return Ok(());
        }
        let mut watch = rust_binary::Watch::new(tar.body());
        let go = go_binary::read(&mut watch)?;
        let rust = watch.finish();
        let (detector, reading) = match rust.packages.is_empty() {
            // A program is of one language; what is said of a list in it is said all the same.
            true => (Detector::GoBinary, go.with_problems(rust.problems)),
            false => (Detector::RustBinary, rust),
        };
        if reading != Reading::default() {
            let found = self.packages(path, detector, reading);
            self.keep(path, found)?;
        }
        Ok(())
    }

    /// Takes what a detector understood, and notes what it did not.
    fn packages(&mut self, path: &str, detector: Detector, read: crate::package::Reading) -> Found {
        for problem in &read.problems {
            self.incomplete(path, problem);
        }
        Found::Packages {
            detector,
            packages: read.packages,
            owned: read.owned,
        }
    }

    fn keep(&mut self, path: &str, found: Found) -> Result<(), LayerError> {
        self.packages += found.count();
        let limit = self.limits.packages;
        if self.packages > limit {
            let exceeded = Exceeded::new("packages in a layer", limit as u64);
            return Err(LayerError::Limit(exceeded));
        }
        self.remember(path.len() + found.weight())?;
        self.inventory.files.insert(path.into(), found);
        Ok(())
    }

    /// A second name of a file that came before it in the same archive.
    fn hard_link(&mut self, path: &str, entry: &Entry) -> Result<(), LayerError> {
        // Under a name that says nothing, a file says nothing either.
        let Some(wanted) = wanted(path, entry.mode) else {
            return Ok(());
        };
        let target = path::normal(&entry.link);
        let found = target.and_then(|target| self.inventory.files.get(&target).cloned());
        match found {
            Some(found) => self.keep(path, found)?,
            // A program that was not kept has nothing to say, nor has its second name.
            None if wanted == Wanted::Executable => {}
            None => self.incomplete(path, "a hard link to a file that was not read"),
        }
        Ok(())
    }

    fn remember(&mut self, bytes: usize) -> Result<(), LayerError> {
        self.remembered += bytes;
        let limit = self.limits.remembered_bytes;
        if self.remembered > limit {
            let exceeded = Exceeded::new("bytes of names to remember from a layer", limit as u64);
            return Err(LayerError::Limit(exceeded));
        }
        Ok(())
    }

    fn incomplete(&mut self, path: &str, reason: &str) {
        if self.inventory.incomplete.len() >= self.limits.incomplete {
            self.unspoken += 1;
            return;
        }
        self.inventory.incomplete.push(Incomplete {
            path: path.into(),
            reason: reason.into(),
        });
    }

    fn finish(mut self) -> LayerInventory {
        if self.unspoken > 0 {
            self.inventory.incomplete.push(Incomplete {
                path: String::new(),
                reason: format!("{} more files could not be understood", self.unspoken),
            });
        }
        self.inventory.paths.seal();
        self.inventory
    }
}

#[cfg(test)]
mod tests {
    use super::super::tar::tests::{file, header};
    use super::*;

    fn inventory(archive: &[Vec<u8>]) -> LayerInventory {
        walk(archive.concat().as_slice(), &Limits::DEFAULT)
            .unwrap()
            .0
    }

    const STATUS: &[u8] = b"Package: a\nStatus: install ok installed\nVersion: 1\n";

    #[test]
    fn deleted_paths_and_hidden_directories_are_told_apart() {
        let found = inventory(&[
            file("etc/.wh.passwd", b""),
            file("usr/.wh..wh..opq", b""),
            file(".wh..wh.plnk/1.2", b""),
            file("a/.wh..wh.aufs", b""),
            file("a/.wh.", b""),
            file("a/.wh...", b""),
            file(".wh.x", b""),
        ]);
        assert_eq!(
            found.whiteouts,
            ["etc/passwd", "x"].map(String::from).into()
        );
        assert_eq!(found.opaque, ["usr".to_owned()].into());
    }

    #[test]
    fn a_hard_link_to_a_database_is_one_too() {
        let found = inventory(&[
            file("var/lib/dpkg/status", STATUS),
            header("var/lib/dpkg/status.d/a", b'1', 0, "var/lib/dpkg/status"),
            header("var/lib/dpkg/status.d/b", b'1', 0, "unread"),
            header("var/lib/dpkg/status-old", b'1', 0, "var/lib/dpkg/status"),
            header("usr/bin/a", b'1', 0, "unread"),
        ]);
        assert!(!found.files.contains_key("var/lib/dpkg/status-old"));
        assert_eq!(
            found.files.get("var/lib/dpkg/status"),
            found.files.get("var/lib/dpkg/status.d/a")
        );
        assert_eq!(found.incomplete.len(), 1);
        assert_eq!(found.incomplete[0].path, "var/lib/dpkg/status.d/b");
    }

    #[test]
    fn a_later_entry_takes_the_place_of_an_earlier_one() {
        let found = inventory(&[
            file("var/lib/dpkg/status", STATUS),
            header("var/lib/dpkg/status", b'2', 0, "/elsewhere"),
        ]);
        assert!(found.files.is_empty());
        assert_eq!(found.links["var/lib/dpkg/status"], "elsewhere");
    }

    #[test]
    fn what_cannot_be_read_is_noted_and_not_dropped() {
        let limits = Limits {
            file_bytes: 10,
            incomplete: 2,
            ..Limits::DEFAULT
        };
        let mut sparse = header("var/lib/dpkg/status.d/sparse", b'S', 0, "");
        sparse.truncate(512);
        let archive = [
            file("var/lib/dpkg/status", STATUS),
            file("../../etc/shadow", b""),
            sparse,
            file("../x", b""),
        ]
        .concat();
        let found = walk(archive.as_slice(), &limits).unwrap().0;
        let reasons: Vec<_> = found
            .incomplete
            .iter()
            .map(|one| one.reason.as_str())
            .collect();
        assert_eq!(
            reasons,
            [
                "more than 10 bytes in the file",
                "a path leads out of the image",
                "2 more files could not be understood"
            ]
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let limits = Limits {
            remembered_bytes: 100,
            ..Limits::DEFAULT
        };
        let archive: Vec<_> = (0..50)
            .map(|number| file(&format!(".wh.{number}"), b""))
            .collect();
        assert!(walk(archive.concat().as_slice(), &limits).is_ok());
        let archive: Vec<_> = (0..99)
            .map(|number| file(&format!(".wh.{number}"), b""))
            .collect();
        let error = walk(archive.concat().as_slice(), &limits)
            .map(|_| ())
            .unwrap_err();
        let expected = "reading the layer: more than 100 bytes of names to remember from a layer";
        assert_eq!(error.to_string(), expected);
        let limits = Limits {
            packages: 1,
            ..Limits::DEFAULT
        };
        let archive = [
            file("var/lib/dpkg/status.d/a", STATUS),
            file("var/lib/dpkg/status.d/b", STATUS),
        ]
        .concat();
        let error = walk(archive.as_slice(), &limits).map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "reading the layer: more than 1 packages in a layer"
        );
    }
}
