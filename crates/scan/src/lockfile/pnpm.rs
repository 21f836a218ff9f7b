//! `pnpm-lock.yaml`, from its fifth to its ninth version: each calls a package by another key. The
//! ninth no longer says what is for development alone; that follows from who needs what.

use super::{LeftOut, Read, is_version, package, reached, text};
use crate::package::Reading;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lock {
    lockfile_version: Version,
    importers: BTreeMap<String, Importer>,
    packages: BTreeMap<String, Entry>,
    snapshots: BTreeMap<String, Snapshot>,
}

/// A number in old files, a text in new ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum Version {
    Number(f64),
    Text(String),
}

impl Default for Version {
    fn default() -> Self {
        Version::Number(0.0)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Importer {
    dependencies: BTreeMap<String, Needed>,
    optional_dependencies: BTreeMap<String, Needed>,
}

/// Before the ninth version only the version stands there, which is not looked at.
#[derive(Deserialize)]
#[serde(untagged)]
enum Needed {
    Resolved { version: String },
    Other(serde::de::IgnoredAny),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: Option<String>,
    version: Option<String>,
    dev: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Snapshot {
    dependencies: BTreeMap<String, String>,
    optional_dependencies: BTreeMap<String, String>,
}

pub(super) fn read(contents: &[u8]) -> Read {
    // Fewer anchors than a lockfile could ever have, which has none.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 100,
            max_aliases: 100,
            max_documents: 16,
            max_nodes: 4_000_000,
            max_events: 8_000_000,
        },
    };
    let text = text(contents);
    // The tool's own needs may stand in a document before that of the project.
    let locks: Vec<Lock> =
        serde_saphyr::from_multiple_with_options(&text, options).map_err(|error| {
            let error = error.to_string();
            let line = error.lines().next().unwrap_or_default();
            format!("no lockfile: {line}")
        })?;
    let lock = locks.into_iter().next_back().unwrap_or_default();
    let version = match &lock.lockfile_version {
        Version::Number(number) => *number,
        Version::Text(text) => text.parse().unwrap_or(0.0),
    };
    if !(5.0..10.0).contains(&version) && !lock.packages.is_empty() {
        return Err(format!("the lockfile's version {version} is not known"));
    }
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    let snapshots: Vec<(&str, &Snapshot)> = lock
        .snapshots
        .iter()
        .map(|(key, snapshot)| (key.as_str(), snapshot))
        .collect();
    let needed = needed(&lock, &snapshots);
    let keys: Vec<&str> = if version >= 9.0 {
        let keys = snapshots.iter().zip(&needed).filter(|(_, needed)| **needed);
        keys.map(|((key, _), _)| without_peers(key)).collect()
    } else {
        let keys = lock.packages.iter();
        keys.filter(|(_, entry)| entry.dev != Some(true))
            .map(|(key, _)| key.as_str())
            .collect()
    };
    for key in keys {
        let entry = lock.packages.get(key);
        let (name, version) = identity(key, version);
        let name = entry.and_then(|one| one.name.as_deref()).unwrap_or(name);
        let version = entry
            .and_then(|one| one.version.as_deref())
            .unwrap_or(version);
        // A directory of the project.
        if version.starts_with("file:") || version.starts_with("link:") || key.starts_with("file:")
        {
            continue;
        }
        match is_version(version) && !name.is_empty() {
            true => reading.packages.push(package(name, version)),
            false => left_out.push(key),
        }
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}

/// Which snapshots the project needs when it runs.
fn needed(lock: &Lock, snapshots: &[(&str, &Snapshot)]) -> Vec<bool> {
    let places: HashMap<&str, usize> = (snapshots.iter().enumerate())
        .map(|(place, (key, _))| (*key, place))
        .collect();
    // Under another name the version is a whole key.
    let find = |name: &str, version: &str| {
        let key = format!("{name}@{version}");
        places
            .get(key.as_str())
            .or_else(|| places.get(version))
            .copied()
    };
    let edges: Vec<Vec<usize>> = snapshots
        .iter()
        .map(|(_, snapshot)| {
            let all = snapshot
                .dependencies
                .iter()
                .chain(&snapshot.optional_dependencies);
            all.filter_map(|(name, version)| find(name, version))
                .collect()
        })
        .collect();
    let importers = lock.importers.values();
    let roots = importers.flat_map(|one| one.dependencies.iter().chain(&one.optional_dependencies));
    let roots = roots.filter_map(|(name, needed)| match needed {
        Needed::Resolved { version } => find(name, version),
        Needed::Other(_) => None,
    });
    reached(roots.collect::<Vec<_>>(), &edges)
}

/// The peers that a package was resolved with stand in parentheses behind it.
fn without_peers(key: &str) -> &str {
    key.split_once('(').map_or(key, |(key, _)| key)
}

/// `/NAME/VERSION_PEERS` up to the fifth version, `/NAME@VERSION(PEERS)` in the sixth, and without
/// the slash since. A registry may stand before the first slash.
fn identity(key: &str, version: f64) -> (&str, &str) {
    let key = if version < 9.0 {
        key.split_once('/').map_or(key, |(_, rest)| rest)
    } else {
        key
    };
    let key = without_peers(key);
    let scope = match key.starts_with('@') {
        true => key.find('/').map_or(0, |slash| slash + 1),
        false => 0,
    };
    let mark = if version < 6.0 { '/' } else { '@' };
    match key[scope..].find(mark) {
        Some(mark) => {
            let (name, rest) = key.split_at(scope + mark);
            let rest = &rest[1..];
            let rest = match version < 6.0 {
                true => rest.split_once('_').map_or(rest, |(version, _)| version),
                false => rest,
            };
            (name, rest)
        }
        None => (key, ""),
    }
}
