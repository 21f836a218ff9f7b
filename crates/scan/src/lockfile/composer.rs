//! `composer.lock`: packages, and apart from them those for development, which are left out.

use super::{LeftOut, Read, json, package};
use crate::package::{Package, Reading};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    packages: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: Option<String>,
    #[serde(default)]
    license: Vec<String>,
}

pub(super) fn read(contents: &[u8]) -> Read {
    let lock: Lock = json(contents)?;
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    for one in lock.packages {
        match &one.version {
            Some(version) => reading.packages.push(Package {
                licence: one.license.first().cloned(),
                ..package(&one.name, version)
            }),
            None => left_out.push(&one.name),
        }
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}
