//! Python distributions: a header like that of a letter, up to the first empty line.

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
}
