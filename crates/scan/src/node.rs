//! npm packages, each with a `package.json` of its own. A file without a name or a version is no
//! package but a project or a piece of one.

use crate::package::{Package, Reading};
use serde_json::Value;

/// Reads a `package.json`.
pub fn package(path: &str, contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    match serde_json::from_slice::<Value>(contents) {
        Ok(file) => reading.packages.extend(read(&file)),
        // Packages carry broken files to test their own parsers with; only installed ones count.
        Err(error) if is_installed(path) => reading.problems.push(format!("no JSON: {error}")),
        Err(_) => {}
    }
    reading
}

fn read(file: &Value) -> Option<Package> {
    let text = |field: &str| file[field].as_str().filter(|text| !text.is_empty());
    let licence = text("license")
        .or_else(|| file["license"]["type"].as_str())
        .or_else(|| file["licenses"][0]["type"].as_str());
    Some(Package {
        licence: licence.map(Into::into),
        ..Package::new(text("name")?, text("version")?)
    })
}

/// Whether the file lies where npm installs: `node_modules/NAME` or `node_modules/@SCOPE/NAME`.
fn is_installed(path: &str) -> bool {
    let mut parts = path.rsplit('/').skip(2);
    match parts.next() {
        Some("node_modules") => true,
        Some(scope) => scope.starts_with('@') && parts.next() == Some("node_modules"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_and_a_version() {
        for (text, expected) in [
            (
                r#"{"name": "a", "version": "1.0.0", "license": "MIT"}"#,
                Some(("a", "1.0.0", "MIT")),
            ),
            (
                r#"{"name": "@s/a", "version": "1", "license": {"type": "ISC"}}"#,
                Some(("@s/a", "1", "ISC")),
            ),
            (
                "\u{feff}{\"name\": \"a\", \"version\": \"1\", \"licenses\": [{\"type\": \"X\"}]}",
                Some(("a", "1", "X")),
            ),
            (r#"{"name": "a"}"#, None),
            (r#"{"name": "a", "version": 1}"#, None),
            ("[]", None),
        ] {
            let reading = package("package.json", text.as_bytes());
            let read = reading.packages.first();
            let read = read.map(|one| {
                (
                    one.name.as_str(),
                    one.version.as_str(),
                    one.licence.as_deref().unwrap(),
                )
            });
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_broken_file_is_noted_only_where_a_package_is_installed() {
        for (path, noted) in [
            ("app/node_modules/a/package.json", true),
            ("app/node_modules/@s/a/package.json", true),
            ("app/node_modules/a/test/broken/package.json", false),
        ] {
            assert_eq!(package(path, b"{").problems.len() == 1, noted, "{path}");
        }
    }
}
