//! Lockfiles of source trees: what a project will have when it is built, written down by the tool
//! that builds it. Images are not asked for them: what an image holds is installed, and a lockfile
//! that was left in it may speak of another time.
//!
//! What a project needs only while it is developed is left out, as is the project itself. Where a
//! lockfile does not tell the two apart, a second file next to it may.

mod bundler;
mod cargo;
mod composer;
mod go;
mod gradle;
mod npm;
mod nuget;
mod pnpm;
mod pom;
mod python;
mod yarn;

use crate::layer::path;
use crate::package::{Detector, Package, Reading};
use std::collections::VecDeque;

/// Bytes of the largest lockfile that is read.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Packages that one lockfile may name.
const MAX_PACKAGES: usize = 100_000;
/// What is left out is named one by one up to here.
const MAX_NAMED: usize = 5;

/// The names of lockfiles, as users are shown them.
pub const NAMES: [&str; 15] = [
    "go.mod",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "requirements.txt",
    "Pipfile.lock",
    "poetry.lock",
    "uv.lock",
    "Cargo.lock",
    "pom.xml",
    "gradle.lockfile",
    "Gemfile.lock",
    "composer.lock",
    "packages.lock.json",
];

/// Yields the contents of another file of the same tree, by its path from the tree's root; nothing
/// where there is none. It is asked only for paths below the root.
pub type Nearby<'a> = dyn FnMut(&str) -> Option<Vec<u8>> + 'a;

/// What understands a file of that name.
fn detector(path: &str) -> Option<Detector> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let installed = parent.split('/').any(|part| part == "node_modules");
    let detector = match name {
        // What lies in an installed package is its maker's.
        "package-lock.json" | "npm-shrinkwrap.json" | "yarn.lock" | "pnpm-lock.yaml"
            if installed =>
        {
            return None;
        }
        "package-lock.json" | "npm-shrinkwrap.json" => Detector::Npm,
        "yarn.lock" => Detector::Yarn,
        "pnpm-lock.yaml" => Detector::Pnpm,
        "requirements.txt" => Detector::Pip,
        "Pipfile.lock" => Detector::Pipenv,
        "poetry.lock" => Detector::Poetry,
        "uv.lock" => Detector::Uv,
        "Cargo.lock" => Detector::Cargo,
        "go.mod" => Detector::GoModule,
        "pom.xml" => Detector::Pom,
        "Gemfile.lock" => Detector::Bundler,
        "composer.lock" => Detector::ComposerLock,
        "packages.lock.json" => Detector::NuGet,
        name if name.ends_with("gradle.lockfile") => Detector::Gradle,
        _ => return None,
    };
    Some(detector)
}

/// Whether a file is a lockfile, by its path.
pub fn is_one(path: &str) -> bool {
    detector(path).is_some()
}

/// Reads the lockfile at `path`, which is relative to the root of the tree; nothing where the file
/// is none.
pub fn read(path: &str, contents: &[u8], nearby: &mut Nearby) -> Option<(Detector, Reading)> {
    let detector = detector(path)?;
    let mut reading = Reading::default();
    if contents.len() > MAX_BYTES {
        reading
            .problems
            .push(format!("more than {MAX_BYTES} bytes in the file"));
        return Some((detector, reading));
    }
    let mut near =
        |name: &str| nearby(&path::target(path, name)?).filter(|file| file.len() <= MAX_BYTES);
    let read = match detector {
        Detector::Npm => npm::read(contents),
        Detector::Yarn => yarn::read(contents, &mut near),
        Detector::Pnpm => pnpm::read(contents),
        Detector::Pip => python::requirements(contents),
        Detector::Pipenv => python::pipfile(contents),
        Detector::Poetry => python::poetry(contents, &mut near),
        Detector::Uv => python::uv(contents),
        Detector::Cargo => cargo::read(contents, &mut near),
        Detector::GoModule => go::read(contents, &mut near),
        Detector::Pom => pom::read(contents, &mut near),
        Detector::Gradle => Ok(gradle::read(contents)),
        Detector::Bundler => Ok(bundler::read(contents)),
        Detector::ComposerLock => composer::read(contents),
        Detector::NuGet => nuget::read(contents),
        _ => return None,
    };
    match read {
        Ok(read) => reading = read,
        Err(problem) => reading.problems.push(problem),
    }
    reading.packages.sort();
    reading.packages.dedup();
    if reading.packages.len() > MAX_PACKAGES {
        reading.packages.truncate(MAX_PACKAGES);
        reading
            .problems
            .push(format!("more than {MAX_PACKAGES} packages in the file"));
    }
    Some((detector, reading))
}

/// What a parser yields: a reading, or why there is none.
type Read = Result<Reading, String>;

/// The contents as text, with any byte order mark gone.
fn text(contents: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents))
}

fn json<'a, T: serde::Deserialize<'a>>(contents: &'a [u8]) -> Result<T, String> {
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    serde_json::from_slice(contents).map_err(|error| format!("no lockfile: {error}"))
}

fn toml<T: serde::de::DeserializeOwned>(contents: &[u8]) -> Result<T, String> {
    ::toml::from_str(&text(contents)).map_err(|error| format!("no lockfile: {}", error.message()))
}

/// Names that were left out for one reason, told in one line.
#[derive(Default)]
struct LeftOut(Vec<String>, usize);

impl LeftOut {
    fn push(&mut self, name: &str) {
        self.1 += 1;
        if self.0.len() < MAX_NAMED {
            // Names come from the file, and may be of any length.
            self.0.push(name.chars().take(100).collect());
        }
    }

    fn tell(self, reading: &mut Reading, what: &str) {
        let rest = self.1 - self.0.len();
        let names = self.0.join(", ");
        match (self.1, rest) {
            (0, _) => {}
            (_, 0) => reading.problems.push(format!("{what}: {names}")),
            _ => reading
                .problems
                .push(format!("{what}: {names} and {rest} more")),
        }
    }
}

/// Which of the nodes can be reached from the roots.
fn reached(roots: impl IntoIterator<Item = usize>, edges: &[Vec<usize>]) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut queue: VecDeque<usize> = roots.into_iter().collect();
    while let Some(node) = queue.pop_front() {
        match seen.get_mut(node) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        queue.extend(edges[node].iter().copied().filter(|next| !seen[*next]));
    }
    seen
}

/// Whether a text starts like a version and not like a place or a range.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    text.starts_with(|first: char| first.is_ascii_digit())
        && !text.contains(|one: char| one.is_whitespace() || matches!(one, '/' | '*' | ','))
}

fn package(name: &str, version: &str) -> Package {
    Package::new(name, version)
}

#[cfg(test)]
mod tests;
