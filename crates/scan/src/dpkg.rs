//! Debian's package database: stanzas of `Field: value` lines, in one file or, in images without a
//! package manager, one file for each package. A package counts when its files are there, which is
//! what the third word of its status says.

pub(crate) mod copyright;

use crate::layer::PathSet;
use crate::layer::path;
use crate::package::{Package, Reading, Source};

/// Reads `var/lib/dpkg/status`.
pub fn status(contents: &[u8]) -> Reading {
    stanzas(contents, false)
}

/// Reads a file below `var/lib/dpkg/status.d`, which has no status and counts as it stands.
pub fn status_of_one(contents: &[u8]) -> Reading {
    stanzas(contents, true)
}

/// Reads the list of a package's files, `HASH  PATH` on each line.
pub fn files(contents: &[u8]) -> PathSet {
    let text = String::from_utf8_lossy(contents);
    let mut paths = PathSet::default();
    for line in text.lines() {
        let file = line.split_once("  ").map_or("", |(_, file)| file);
        if let Some(path) = path::normal(file).filter(|path| !path.is_empty()) {
            paths.insert(&path);
        }
    }
    paths.seal();
    paths
}

/// The fields that matter.
#[derive(Default)]
struct Stanza<'a> {
    name: &'a str,
    version: &'a str,
    status: &'a str,
    architecture: &'a str,
    source: &'a str,
    maintainer: &'a str,
    /// The last field was one of these; lines that go on with it are none of ours.
    empty: bool,
}

fn stanzas(contents: &[u8], installed_without_status: bool) -> Reading {
    let text = String::from_utf8_lossy(contents);
    let mut reading = Reading::default();
    let mut stanza = Stanza {
        empty: true,
        ..Stanza::default()
    };
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if !stanza.empty {
                stanza.finish(&mut reading, installed_without_status);
            }
            stanza = Stanza {
                empty: true,
                ..Stanza::default()
            };
            continue;
        }
        stanza.empty = false;
        // A line that goes on starts with a space and belongs to a field we do not read.
        if line.starts_with([' ', '\t', '#']) {
            continue;
        }
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        let is = |name: &str| field.eq_ignore_ascii_case(name);
        match field.len() {
            7 if is("Package") => stanza.name = value,
            7 if is("Version") => stanza.version = value,
            6 if is("Status") => stanza.status = value,
            12 if is("Architecture") => stanza.architecture = value,
            6 if is("Source") => stanza.source = value,
            10 if is("Maintainer") => stanza.maintainer = value,
            _ => {}
        }
    }
    reading
}

impl Stanza<'_> {
    fn finish(&self, reading: &mut Reading, installed_without_status: bool) {
        if !self.is_installed(installed_without_status) {
            return;
        }
        if self.name.is_empty() || self.version.is_empty() {
            let what = if self.name.is_empty() {
                "name"
            } else {
                "version"
            };
            let problem = format!("the installed package {:?} has no {what}", self.name);
            reading.problems.push(problem);
            return;
        }
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        reading.packages.push(Package {
            name: self.name.into(),
            version: self.version.into(),
            architecture: given(self.architecture),
            source: Some(self.source()),
            vendor: given(self.maintainer),
            ..Package::default()
        });
    }

    fn is_installed(&self, without_status: bool) -> bool {
        match self.status.split_ascii_whitespace().nth(2) {
            Some(state) => !matches!(state, "not-installed" | "config-files"),
            None => without_status || !self.status.is_empty(),
        }
    }

    /// `name`, or `name (version)` where the source's version is another.
    fn source(&self) -> Source {
        let (name, version) = match self.source.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.trim_end_matches(')').trim()),
            None => (self.source, ""),
        };
        let or = |text: &str, other: &str| {
            let text = if text.is_empty() { other } else { text };
            text.to_owned()
        };
        Source {
            name: or(name, self.name),
            version: or(version, self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\
Package: adduser
Status: install ok installed
Priority: important
Maintainer: Debian Adduser Developers <adduser@packages.debian.org>
Architecture: all
Multi-Arch: foreign
Version: 3.134
Description: add and remove users and groups
 This package includes the 'adduser' commands.
 Version: 9 is not a field here
 .
Homepage: nowhere

Package: libgcc-s1
Status: install ok installed
Architecture: amd64
Source: gcc-12 (12.2.0-14)
Version: 1:12.2.0-14+deb12u1

Package: libssl3
Status: hold ok unpacked
Source: openssl
Version: 3.0.11-1~deb12u2

Package: gone
Status: deinstall ok config-files
Version: 1

Package: purged
Status: purge ok not-installed

Package: nameless
Status: install ok installed
";

    #[test]
    fn installed_packages_are_read_with_their_sources() {
        let reading = status(STATUS.as_bytes());
        let read: Vec<_> = reading
            .packages
            .iter()
            .map(|package| {
                let source = package.source.as_ref().unwrap();
                (
                    package.name.as_str(),
                    package.version.as_str(),
                    package.architecture.as_deref(),
                    source.name.as_str(),
                    source.version.as_str(),
                )
            })
            .collect();
        assert_eq!(
            read,
            [
                ("adduser", "3.134", Some("all"), "adduser", "3.134"),
                (
                    "libgcc-s1",
                    "1:12.2.0-14+deb12u1",
                    Some("amd64"),
                    "gcc-12",
                    "12.2.0-14"
                ),
                (
                    "libssl3",
                    "3.0.11-1~deb12u2",
                    None,
                    "openssl",
                    "3.0.11-1~deb12u2"
                ),
            ]
        );
        assert_eq!(
            reading.problems,
            ["the installed package \"nameless\" has no version"]
        );
    }

    #[test]
    fn a_package_without_a_status_counts_only_where_there_is_none() {
        let one = b"Package: base-files\nVersion: 12.4+deb12u5\n";
        assert_eq!(status_of_one(one).packages.len(), 1);
        assert_eq!(status(one).packages.len(), 0);
    }

    #[test]
    fn states_decide_whether_a_package_is_there() {
        for (state, there) in [
            ("install ok installed", true),
            ("deinstall ok installed", true),
            ("install reinstreq half-installed", true),
            ("install ok half-configured", true),
            ("install ok triggers-pending", true),
            ("deinstall ok config-files", false),
            ("unknown ok not-installed", false),
        ] {
            let stanza = format!("Package: a\nVersion: 1\nStatus: {state}\n");
            assert_eq!(
                status(stanza.as_bytes()).packages.len() == 1,
                there,
                "{state}"
            );
        }
    }

    #[test]
    fn owned_files_are_read_from_the_list_of_sums() {
        let paths = files(b"d41d8cd98f00b204e9800998ecf8427e  usr/bin/a b\n0  ./etc/x\nnonsense\n");
        assert!(paths.contains("usr/bin/a b") && paths.contains("etc/x"));
        assert_eq!(paths.len(), 2);
    }
}
