//! `packages.lock.json` of NuGet: for each framework the packages that were resolved for it.

use super::{LeftOut, Read, json, package};
use crate::package::Reading;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    dependencies: BTreeMap<String, BTreeMap<String, Resolved>>,
}

#[derive(Deserialize)]
struct Resolved {
    #[serde(rename = "type", default)]
    kind: String,
    resolved: Option<String>,
}

pub(super) fn read(contents: &[u8]) -> Read {
    let lock: Lock = json(contents)?;
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    for (name, one) in lock.dependencies.values().flatten() {
        match &one.resolved {
            _ if one.kind.eq_ignore_ascii_case("project") => {}
            Some(version) => reading.packages.push(package(name, version)),
            None => left_out.push(name),
        }
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}
