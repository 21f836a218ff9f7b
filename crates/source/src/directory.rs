//! A directory of source code: the files in it that pin what it depends on. What was fetched or built
//! is left out, for the pins speak of it, and so is everything that links lead to.

use crate::error::Error;
use crate::files::{open_regular, whole};
use crate::options::Options;
use muster_scan::image::{Component, Contents};
use muster_scan::layer::Incomplete;
use muster_scan::limits::Limits;
use muster_scan::lockfile;
use muster_scan::sbom::{Bill, Subject};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Directories that hold what was fetched, built or recorded, and not what was written.
const LEFT_OUT: [&str; 14] = [
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".venv",
    "venv",
    "__pycache__",
    ".gradle",
    ".terraform",
    ".bundle",
    "bower_components",
    "node_modules",
    "target",
    "vendor",
];
/// Directories within each other.
const DEPTH: usize = 64;
/// Files and directories that are looked at.
const ENTRIES: u64 = 1_000_000;

/// Scans a directory.
pub(crate) async fn bill(root: &Path, options: &Options) -> Result<Bill, Error> {
    let (root, limits) = (root.to_owned(), options.limits);
    tokio::task::spawn_blocking(move || read(&root, &limits)).await?
}

fn read(root: &Path, limits: &Limits) -> Result<Bill, Error> {
    let attempt = || format!("reading the directory {}", root.display());
    let failed = |error| Error::file(attempt(), error);
    let mut walk = Walk {
        root: &root.canonicalize().map_err(failed)?,
        limits,
        entries: 0,
        lockfiles: 0,
        contents: Contents::default(),
    };
    walk.directory("", 0).map_err(failed)?;
    if walk.lockfiles == 0 && walk.contents.incomplete.is_empty() {
        return Err(Error::NothingRecognised(root.to_owned()));
    }
    let mut contents = walk.contents;
    contents.components.sort();
    contents.components.dedup();
    contents.incomplete.sort();
    let subject = Subject {
        name: root.display().to_string(),
        ..Subject::default()
    };
    Ok(Bill::new(subject, contents))
}

struct Walk<'a> {
    root: &'a Path,
    limits: &'a Limits,
    entries: u64,
    /// Lockfiles found.
    lockfiles: u64,
    contents: Contents,
}

impl Walk<'_> {
    fn directory(&mut self, path: &str, depth: usize) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > ENTRIES {
                let reason = format!("more than {ENTRIES} files; name a smaller directory");
                return Err(io::Error::other(reason));
            }
            // A name that is no text is none that pins anything.
            if let Ok(name) = entry.file_name().into_string() {
                names.push((name, entry.file_type()?));
            }
        }
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, kind) in names {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}/{name}"),
            };
            if kind.is_file() && lockfile::is_one(&path) {
                self.lockfiles += 1;
                if let Err(error) = self.file(&path) {
                    self.incomplete(&path, error);
                }
            } else if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                if depth >= DEPTH {
                    self.incomplete(&path, "its directories are too deep");
                } else if let Err(error) = self.directory(&path, depth + 1) {
                    match self.entries > ENTRIES {
                        true => return Err(error),
                        false => self.incomplete(&path, error),
                    }
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str) -> Result<(), Error> {
        let attempt = || "reading it".to_owned();
        let contents = |path: &str| {
            let file = open_below(self.root, path);
            let file = file.map_err(|error| Error::file(attempt(), error))?;
            whole(file, self.limits.file_bytes, attempt)
        };
        let bytes = contents(path)?;
        let mut nearby = |path: &str| contents(path).ok();
        let Some((detector, reading)) = lockfile::read(path, &bytes, &mut nearby) else {
            return Ok(());
        };
        for problem in reading.problems {
            self.incomplete(path, problem);
        }
        let known = self.contents.components.len();
        if known + reading.packages.len() > self.limits.packages {
            return Err(Error::TooLarge {
                attempt: attempt(),
                what: "packages in the directory",
                limit: self.limits.packages as u64,
            });
        }
        let component = |package| Component {
            detector,
            package,
            path: path.into(),
            layer: None,
        };
        let components = reading.packages.into_iter().map(component);
        self.contents.components.extend(components);
        Ok(())
    }

    fn incomplete(&mut self, path: &str, reason: impl ToString) {
        if self.contents.incomplete.len() < self.limits.incomplete {
            self.contents.incomplete.push(Incomplete {
                path: path.into(),
                reason: reason.to_string(),
            });
        }
    }
}

/// Opens a file of a tree, if that is where its path leads.
fn open_below(root: &Path, path: &str) -> io::Result<File> {
    let place = root.join(path).canonicalize()?;
    match place.starts_with(root) {
        true => open_regular(&place),
        false => Err(io::Error::other("it leads out of the directory")),
    }
}
