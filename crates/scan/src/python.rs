//! Python distributions: a header like that of a letter, up to the first empty line.

use crate::java::zip::Archive;
use crate::package::{Package, Reading};

/// Reads a `METADATA`, `PKG-INFO` or `.egg-info` file.
pub fn metadata(contents: &[u8]) -> Reading {
    let text = String::from_utf8_lossy(contents);
    let (mut name, mut version, mut licence, mut expression) = (None, None, None, None);
    for line in text.lines().take_while(|line| !line.trim().is_empty()) {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if line.starts_with([' ', '\t']) || value.is_empty() {
            continue;
        }
        let place = match field.to_ascii_lowercase().as_str() {
            "name" => &mut name,
            "version" => &mut version,
            "license" => &mut licence,
            "license-expression" => &mut expression,
            _ => continue,
        };
        place.get_or_insert(value);
    }
    let mut reading = Reading::default();
    match (name, version) {
        (Some(name), Some(version)) => reading.packages.push(Package {
            licence: expression
                .or(licence)
                .filter(|licence| *licence != "UNKNOWN")
                .map(Into::into),
            ..Package::new(name, version)
        }),
        _ => reading.problems.push("no name or no version".into()),
    }
    reading
}

/// Bytes of the header of an egg.
const MAX_HEADER: u64 = 1024 * 1024;

/// Reads an egg, which is an archive with such a header in it.
pub fn egg(contents: &[u8]) -> Reading {
    let read = || -> Result<Reading, String> {
        let archive = Archive::open(contents)?;
        for entry in archive.entries() {
            let entry = entry?;
            if entry.name == b"EGG-INFO/PKG-INFO" {
                return Ok(metadata(&archive.contents(&entry, MAX_HEADER)?));
            }
        }
        Err("an egg without EGG-INFO/PKG-INFO".into())
    };
    read().unwrap_or_else(|problem| Reading::default().with_problems(vec![problem]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_name_version_and_licence() {
        let reading = metadata(
            b"Metadata-Version: 2.1\nName: Flask\nVersion: 2.0.1\nLicense: BSD-3-Clause\n        Version: 9\n\nName: body\n",
        );
        let package = &reading.packages[0];
        assert_eq!(
            (package.name.as_str(), package.version.as_str()),
            ("Flask", "2.0.1")
        );
        assert_eq!(package.licence.as_deref(), Some("BSD-3-Clause"));
        assert_eq!(metadata(b"Name: a\n\nVersion: 1\n").problems.len(), 1);
    }

    #[test]
    fn an_egg_has_a_header_within() {
        use crate::java::zip::tests::{Method, archive};
        let header = b"Name: a\nVersion: 1\n";
        let whole = archive(&[
            ("a/__init__.py", b"", Method::Stored),
            ("EGG-INFO/PKG-INFO", header, Method::Deflated),
        ]);
        assert_eq!(egg(&whole).packages, [Package::new("a", "1")]);
        assert_eq!(egg(b"").problems, ["no zip archive"]);
        let other = archive(&[("a", b"", Method::Stored)]);
        assert_eq!(egg(&other).problems, ["an egg without EGG-INFO/PKG-INFO"]);
    }
}
