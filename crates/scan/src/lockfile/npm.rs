//! `package-lock.json`: since its second version a map of where each package lies, before that a
//! tree of packages within packages.

use super::{LeftOut, Read, is_version, json, package};
use crate::package::{Package, Reading};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    packages: BTreeMap<String, Placed>,
    #[serde(default)]
    dependencies: BTreeMap<String, Nested>,
}

#[derive(Deserialize)]
struct Placed {
    /// The name, where it is not that of the directory.
    name: Option<String>,
    version: Option<String>,
    #[serde(default)]
    dev: bool,
    /// Stands for a directory of the project.
    #[serde(default)]
    link: bool,
    license: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Nested {
    version: Option<String>,
    #[serde(default)]
    dev: bool,
    #[serde(default)]
    dependencies: BTreeMap<String, Nested>,
}

pub(super) fn read(contents: &[u8]) -> Read {
    let lock: Lock = json(contents)?;
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    for (place, one) in &lock.packages {
        // What lies elsewhere is the project itself, or a part of it.
        let Some((_, folder)) = place.rsplit_once("node_modules/") else {
            continue;
        };
        if one.dev || one.link {
            continue;
        }
        let name = one.name.as_deref().unwrap_or(folder);
        match &one.version {
            Some(version) => reading.packages.push(Package {
                licence: one.licence(),
                ..package(name, version)
            }),
            None => left_out.push(name),
        }
    }
    if lock.packages.is_empty() {
        nested(&lock.dependencies, &mut reading, &mut left_out);
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}

impl Placed {
    fn licence(&self) -> Option<String> {
        let licence = self.license.as_ref()?;
        licence
            .as_str()
            .or_else(|| licence["type"].as_str())
            .map(Into::into)
    }
}

/// The depth is bounded by that of the JSON.
fn nested(dependencies: &BTreeMap<String, Nested>, reading: &mut Reading, left_out: &mut LeftOut) {
    for (name, one) in dependencies {
        let version = one.version.as_deref().unwrap_or_default();
        // A package under another name: `npm:NAME@VERSION`.
        let alias = version
            .strip_prefix("npm:")
            .and_then(|rest| rest.rsplit_once('@'));
        let (name, version) = alias.unwrap_or((name, version));
        // A part of the project is linked to; what it needs is listed below it all the same.
        let is_project = version.starts_with("file:") || version.starts_with("link:");
        if !one.dev && !is_project {
            match is_version(version) {
                true => reading.packages.push(package(name, version)),
                false => left_out.push(name),
            }
        }
        nested(&one.dependencies, reading, left_out);
    }
}
