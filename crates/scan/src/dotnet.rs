//! What a .NET program depends on: `NAME.deps.json`, written when it is built.

use crate::package::{Package, Reading};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Dependencies {
    #[serde(default)]
    libraries: BTreeMap<String, Library>,
}

#[derive(Deserialize)]
struct Library {
    #[serde(rename = "type", default)]
    kind: String,
}

/// Reads a `.deps.json`. Projects are the program's own and no packages.
pub fn dependencies(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    match serde_json::from_slice::<Dependencies>(contents) {
        Ok(file) => {
            for (library, about) in file.libraries {
                if let Some((name, version)) = library.split_once('/')
                    && about.kind == "package"
                {
                    reading.packages.push(Package::new(name, version));
                }
            }
        }
        Err(error) => reading
            .problems
            .push(format!("no list of dependencies: {error}")),
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_and_projects_are_not() {
        let reading = dependencies(
            br#"{"libraries": {"App/1.0.0": {"type": "project"},
                "Newtonsoft.Json/13.0.1": {"type": "package", "sha512": "x"}}}"#,
        );
        assert_eq!(
            reading.packages,
            [Package::new("Newtonsoft.Json", "13.0.1")]
        );
        assert_eq!(dependencies(b"{").problems.len(), 1);
    }
}
