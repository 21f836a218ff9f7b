//! What to scan, recognised from what a person types. A scheme says it outright; without one, what
//! exists on disk is looked at, and the rest is the name of an image in a registry.

use crate::daemon::Engine;
use crate::error::Error;
use muster_registry::Reference;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files and directories that only the root of a system has.
const OF_A_SYSTEM: [&str; 5] = [
    "etc/os-release",
    "usr/lib/os-release",
    "var/lib/dpkg",
    "lib/apk",
    "var/lib/rpm",
];

/// Something that can be scanned. A selector says which of several images of a file is meant: by its
/// name, its tag or its digest.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// An image in a registry.
    Registry(Reference),
    /// An OCI layout: a directory, or the same in an archive.
    Layout(PathBuf, Option<String>),
    /// An archive with images, as `docker save` and others write it.
    Archive(PathBuf, Option<String>),
    /// An image of a daemon of this machine.
    Daemon {
        /// Which daemon.
        engine: Engine,
        /// The image, as the daemon knows it.
        reference: String,
    },
    /// The root of a file system.
    RootFilesystem(PathBuf),
    /// A directory of source code, with files that pin what it depends on.
    Directory(PathBuf),
    /// A bill of materials, in SPDX or CycloneDX.
    Document(PathBuf),
}

impl Source {
    /// Recognises what is meant. The schemes are `registry:`, `oci:`, `archive:`, `docker:`,
    /// `podman:`, `rootfs:`, `dir:` and `sbom:`. What they hold images in may be followed by a
    /// selector: `oci:images:latest`, `archive:images.tar@sha256:…`.
    pub fn parse(text: &str) -> Result<Source, Error> {
        if let Some((scheme, rest)) = scheme(text) {
            return explicit(scheme, rest);
        }
        if let Ok(about) = fs::metadata(text) {
            return recognise(Path::new(text), about.is_dir(), None);
        }
        if is_path(text) {
            let (path, selector) = selected(text);
            let there = || Error::NothingThere(text.into());
            let about = fs::metadata(&path).map_err(|_| there())?;
            return match selector {
                Some(_) => recognise(&path, about.is_dir(), selector),
                None => Err(there()),
            };
        }
        Ok(Source::Registry(Reference::parse(text)?))
    }
}

const SCHEMES: [&str; 8] = [
    "registry", "oci", "archive", "docker", "podman", "rootfs", "dir", "sbom",
];

/// The scheme of a text, and what follows it.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    // `registry:2` and `docker:24-dind` are images that many use, and not the image `2`.
    let is_tag = !rest.contains(['/', ':', '@'])
        && (rest == "latest" || rest.starts_with(|first: char| first.is_ascii_digit()));
    let is_image = matches!(scheme, "registry" | "docker" | "podman") && is_tag;
    (SCHEMES.contains(&scheme) && !is_image).then_some((scheme, rest))
}

fn explicit(scheme: &str, rest: &str) -> Result<Source, Error> {
    let daemon = |engine| {
        Ok(Source::Daemon {
            engine,
            reference: rest.into(),
        })
    };
    let there = || match fs::metadata(rest) {
        Ok(_) => Ok(PathBuf::from(rest)),
        Err(_) => Err(Error::NothingThere(rest.into())),
    };
    let holder = || {
        let (path, selector) = selected(rest);
        match fs::metadata(&path) {
            Ok(_) => Ok((path, selector)),
            Err(_) => Err(Error::NothingThere(rest.into())),
        }
    };
    match scheme {
        "registry" => Ok(Source::Registry(Reference::parse(rest)?)),
        "oci" => holder().map(|(path, selector)| Source::Layout(path, selector)),
        "archive" => holder().map(|(path, selector)| Source::Archive(path, selector)),
        "docker" => daemon(Engine::Docker),
        "podman" => daemon(Engine::Podman),
        "rootfs" => Ok(Source::RootFilesystem(there()?)),
        "dir" => Ok(Source::Directory(there()?)),
        _ => Ok(Source::Document(there()?)),
    }
}

/// Whether a text can only be a path.
fn is_path(text: &str) -> bool {
    text == "."
        || text == ".."
        || ["/", "./", "../", "~/"]
            .iter()
            .any(|start| text.starts_with(start))
}

/// A path and the selector behind it: the longest path that exists, else the whole text.
fn selected(text: &str) -> (PathBuf, Option<String>) {
    if fs::metadata(text).is_ok() {
        return (text.into(), None);
    }
    let ends = text.match_indices([':', '@']).map(|(end, _)| end);
    for end in ends.rev() {
        let (path, selector) = (&text[..end], &text[end + 1..]);
        if !selector.is_empty() && fs::metadata(path).is_ok() {
            return (path.into(), Some(selector.into()));
        }
    }
    (text.into(), None)
}

/// What is at a path.
fn recognise(path: &Path, is_directory: bool, selector: Option<String>) -> Result<Source, Error> {
    if !is_directory {
        return file(path, selector);
    }
    if path.join("oci-layout").is_file() {
        return Ok(Source::Layout(path.into(), selector));
    }
    let is_there = |part: &&str| path.join(part).symlink_metadata().is_ok();
    if OF_A_SYSTEM.iter().any(is_there) {
        return Ok(Source::RootFilesystem(path.into()));
    }
    Ok(Source::Directory(path.into()))
}

fn file(path: &Path, selector: Option<String>) -> Result<Source, Error> {
    let attempt = || format!("looking at {}", path.display());
    let mut start = Vec::new();
    let file = File::open(path).map_err(|error| Error::file(attempt(), error))?;
    let is_file = file.metadata().is_ok_and(|about| about.is_file());
    let unrecognised = |reason| Error::Unrecognised {
        path: path.into(),
        reason,
    };
    if !is_file {
        return Err(unrecognised("it is no regular file"));
    }
    let read = file.take(512).read_to_end(&mut start);
    read.map_err(|error| Error::file(attempt(), error))?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    if text.trim_ascii_start().starts_with(b"{") {
        return Ok(Source::Document(path.into()));
    }
    let is_tar = start.get(257..262) == Some(b"ustar");
    let is_named = path.extension().is_some_and(|extension| extension == "tar");
    if is_tar || is_named || crate::stream::is_compressed(&start) {
        return Ok(Source::Archive(path.into(), selector));
    }
    Err(unrecognised(
        "it is no archive and no JSON document; an image archive is one that docker save, podman save or skopeo wrote",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(text: &str) -> Source {
        Source::Registry(Reference::parse(text).unwrap())
    }

    #[test]
    fn what_is_on_disk_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let text = |name: &str| at(name).display().to_string();
        for directory in ["layout", "system/etc", "code", "odd:name"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        let mut tar = vec![0; 600];
        tar[257..262].copy_from_slice(b"ustar");
        for (name, bytes) in [
            ("layout/oci-layout", &b"{}"[..]),
            ("system/etc/os-release", b""),
            ("code/Cargo.lock", b""),
            ("saved", &tar),
            ("saved.tar.gz", b"\x1f\x8b\x08"),
            ("empty.tar", b""),
            ("bill.json", b"\xef\xbb\xbf \n{}"),
            ("text", b"hello"),
        ] {
            fs::write(at(name), bytes).unwrap();
        }
        for (typed, source) in [
            (text("layout"), Source::Layout(at("layout"), None)),
            (
                text("layout") + ":1.2",
                Source::Layout(at("layout"), Some("1.2".into())),
            ),
            (text("system"), Source::RootFilesystem(at("system"))),
            (text("code"), Source::Directory(at("code"))),
            (text("odd:name"), Source::Directory(at("odd:name"))),
            (text("saved"), Source::Archive(at("saved"), None)),
            (
                text("saved.tar.gz"),
                Source::Archive(at("saved.tar.gz"), None),
            ),
            (text("empty.tar"), Source::Archive(at("empty.tar"), None)),
            (text("bill.json"), Source::Document(at("bill.json"))),
            (
                format!("dir:{}", text("system")),
                Source::Directory(at("system")),
            ),
            (
                format!("rootfs:{}", text("code")),
                Source::RootFilesystem(at("code")),
            ),
            (
                format!("archive:{}:a/b:1@sha256:0", text("saved")),
                Source::Archive(at("saved"), Some("a/b:1@sha256:0".into())),
            ),
            (
                format!("oci:{}@sha256:0", text("layout")),
                Source::Layout(at("layout"), Some("sha256:0".into())),
            ),
        ] {
            assert_eq!(Source::parse(&typed).unwrap(), source, "{typed}");
        }
        for wrong in ["text", "missing", "missing:tag"] {
            let error = Source::parse(&text(wrong)).unwrap_err().to_string();
            assert!(error.contains(&text(wrong)), "{error}");
        }
        for scheme in ["oci", "archive", "rootfs", "dir", "sbom"] {
            let typed = format!("{scheme}:{}", text("missing"));
            let error = Source::parse(&typed).unwrap_err().to_string();
            assert!(error.starts_with("there is nothing at "), "{error}");
        }
    }

    #[test]
    fn everything_else_is_an_image() {
        for (typed, source) in [
            ("nginx", image("nginx")),
            ("ghcr.io/a/b:1", image("ghcr.io/a/b:1")),
            ("registry:2", image("registry:2")),
            ("docker:24-dind", image("docker:24-dind")),
            ("registry:registry:2", image("registry:2")),
            ("registry:nginx", image("nginx")),
            (
                "docker:nginx:1",
                Source::Daemon {
                    engine: Engine::Docker,
                    reference: "nginx:1".into(),
                },
            ),
            (
                "podman:localhost/a",
                Source::Daemon {
                    engine: Engine::Podman,
                    reference: "localhost/a".into(),
                },
            ),
        ] {
            assert_eq!(Source::parse(typed).unwrap(), source, "{typed}");
        }
        let error = Source::parse("No Such").unwrap_err().to_string();
        assert!(error.contains("No Such"), "{error}");
    }
}
