//! Which files are read: those that are named, and whatever looks like a manifest in directories. A
//! link is followed where it is named and not where it is found, so that no directory contains itself.

use super::manifest::{LARGEST, Read, Written, read};
use super::talk::Talk;
use anyhow::{Context, Result, bail};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// More files than this are not looked for.
const MOST_FILES: usize = 100_000;
const DEEPEST: usize = 64;
/// All files together may be so large: all objects are held at once.
const LARGEST_SUM: u64 = 1024 * 1024 * 1024;

/// Reads what `-f` names. What is no object of Kubernetes is left out, and told.
pub(super) fn objects(names: &[String], talk: &Talk) -> Result<Vec<Written>> {
    let mut sum = 0;
    let mut objects = Vec::new();
    for name in names {
        for (file, is_named) in files(name, talk)? {
            let text = match text(&file, &mut sum) {
                Ok(text) => text,
                // What was asked for by name has to be there.
                Err(error) if is_named => return Err(error),
                Err(error) => {
                    talk.trouble(&crate::told(&error));
                    continue;
                }
            };
            for one in read(&file.to_string_lossy(), &text) {
                match one {
                    Read::Object(one) => objects.push(one),
                    Read::Other(one) if is_named => {
                        talk.trouble(&format!("{} is no object of Kubernetes", one.origin));
                    }
                    Read::Other(one) => {
                        talk.note(&format!("{} is no object of Kubernetes", one.origin));
                    }
                    Read::Broken(why) => talk.trouble(&why),
                }
            }
        }
    }
    Ok(objects)
}

/// The files that a name means, and whether it means that one alone.
pub(super) fn files(name: &str, talk: &Talk) -> Result<Vec<(PathBuf, bool)>> {
    let path = PathBuf::from(name);
    if name == "-" {
        return Ok(vec![(path, true)]);
    }
    let what = std::fs::metadata(&path).with_context(|| format!("reading {name}"))?;
    if !what.is_dir() {
        return Ok(vec![(path, true)]);
    }
    let mut found = Vec::new();
    walk(&path, 0, &mut found, talk)?;
    if found.is_empty() {
        bail!("{name} has no file that ends in .yaml, .yml or .json");
    }
    Ok(found.into_iter().map(|file| (file, false)).collect())
}

fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>, talk: &Talk) -> Result<()> {
    let entries = std::fs::read_dir(directory).and_then(|entries| {
        let entries = entries.map(|entry| {
            let entry = entry?;
            Ok((entry.path(), entry.file_type()?))
        });
        entries.collect::<std::io::Result<Vec<_>>>()
    });
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            talk.trouble(&format!("reading {}: {error}", directory.display()));
            return Ok(());
        }
    };
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, sort) in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if sort.is_dir() {
            if depth == DEEPEST {
                bail!("{} is nested too deeply", path.display());
            }
            walk(&path, depth + 1, found, talk)?;
        } else if is_manifest(&path) && path.is_file() {
            if found.len() == MOST_FILES {
                bail!("{} has more than {MOST_FILES} files", directory.display());
            }
            found.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|one| extension == *one)
}

/// The text of a file; `sum` counts what has been read so far.
pub(super) fn text(path: &Path, sum: &mut u64) -> Result<String> {
    let (name, what) = (path.display(), "reading");
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(LARGEST + 1)
            .read_to_end(&mut bytes)
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("{what} {name}"))?;
        file.take(LARGEST + 1).read_to_end(&mut bytes)
    };
    let read = read.with_context(|| format!("{what} {name}"))? as u64;
    *sum += read;
    if read > LARGEST {
        bail!("{what} {name}: it is larger than {} MiB", LARGEST >> 20);
    }
    if *sum > LARGEST_SUM {
        bail!(
            "{what} {name}: all files together are larger than {} MiB",
            LARGEST_SUM >> 20
        );
    }
    String::from_utf8(bytes).with_context(|| format!("{what} {name}"))
}
