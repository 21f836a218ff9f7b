//! Code in files of this machine. Whoever may write a policy may name any file, and in a control plane
//! that is somebody with one namespace: so a file is only read below the directories that whoever
//! started the program named, none if nobody did, wherever links lead. A program that somebody starts
//! for himself may name `/`.

use crate::prepare::PrepareError;
use muster_policy::load::LoadError;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Reads a file below one of the directories.
pub(super) fn read(
    path: &Path,
    below: &[PathBuf],
    largest: usize,
) -> Result<Vec<u8>, PrepareError> {
    let refused = |why: &str| {
        let why = format!("file://{}: {why}", path.display());
        PrepareError::Load(LoadError::Module(why))
    };
    if below.is_empty() {
        return Err(refused("no files are read here"));
    }
    let later = |error: io::Error| {
        let why = error.kind();
        PrepareError::Later(format!(
            "the module cannot be read: file://{}: {why}",
            path.display()
        ))
    };
    // What is outside is all the same, whether it exists or not.
    let outside = || refused("it is in no directory that policies may be in");
    let lies_below = |path: &Path| below.iter().any(|directory| path.starts_with(directory));
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if lies_below(path) && is_plain(path) => return Err(later(error)),
        Err(_) => return Err(outside()),
    };
    let mut real_directories = below.iter().filter_map(|one| one.canonicalize().ok());
    if !real_directories.any(|directory| real.starts_with(directory)) {
        return Err(outside());
    }
    // Before it is opened: a pipe would not even open.
    let found = real.metadata().map_err(later)?;
    if !found.is_file() {
        return Err(refused("it is no file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(&real).map_err(later)?;
    let limit = largest as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(later)?;
    match bytes.len() > largest {
        true => Err(refused(&format!("it is larger than {largest} bytes"))),
        false => Ok(bytes),
    }
}

/// Whether a path leads only down.
fn is_plain(path: &Path) -> bool {
    use std::path::Component;
    let mut parts = path.components();
    parts.all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_read_only_below_the_directories_that_are_named() {
        let home = tempfile::tempdir().unwrap();
        let (inside, outside) = (home.path().join("in"), home.path().join("out"));
        for directory in [&inside, &outside] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("a"), b"code").unwrap();
        }
        std::os::unix::fs::symlink(outside.join("a"), inside.join("link")).unwrap();
        fs::write(inside.join("large"), [0; 11]).unwrap();
        let below = [inside.clone()];
        for (path, directories, expected) in [
            (inside.join("a"), &below[..], Ok(())),
            (inside.join("a"), &[], Err("no files are read here")),
            (outside.join("a"), &below, Err("in no directory")),
            (outside.join("missing"), &below, Err("in no directory")),
            (inside.join("link"), &below, Err("in no directory")),
            (inside.join("../out/a"), &below, Err("in no directory")),
            (
                inside.join("../out/missing"),
                &below,
                Err("in no directory"),
            ),
            (inside.join("missing"), &below, Err("cannot be read")),
            (inside.join("large"), &below, Err("larger than 10 bytes")),
            (inside.clone(), &below, Err("it is no file")),
            ("/dev/zero".into(), &["/".into()], Err("it is no file")),
        ] {
            match (read(&path, directories, 10), expected) {
                (Ok(bytes), Ok(())) => assert_eq!(bytes, b"code"),
                (Err(error), Err(expected)) => {
                    let text = error.to_string();
                    assert!(text.contains(expected), "{text}");
                }
                (found, expected) => panic!("{path:?}: {found:?} and {expected:?}"),
            }
        }
    }
}
