//! `Cargo.lock`: a list of crates, with what each of them needs. Crates without a source are the
//! project's own. What is for tests alone stands in `Cargo.toml`, not here.

use super::{Nearby, Read, package, reached, toml};
use crate::package::Reading;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    /// `NAME`, `NAME VERSION` or `NAME VERSION (SOURCE)`: as much as tells it apart.
    #[serde(default)]
    dependencies: Vec<String>,
}

pub(super) fn read(contents: &[u8], near: &mut Nearby) -> Read {
    let lock: Lock = toml(contents)?;
    let needed = near("Cargo.toml").and_then(|file| needed(&lock, &file));
    let mut reading = Reading::default();
    for (place, one) in lock.package.iter().enumerate() {
        let is_needed = needed.as_ref().is_none_or(|needed| needed[place]);
        if one.source.is_some() && is_needed {
            reading.packages.push(package(&one.name, &one.version));
        }
    }
    Ok(reading)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Manifest {
    package: Option<Project>,
    workspace: Option<serde::de::IgnoredAny>,
    dependencies: BTreeMap<String, ::toml::Value>,
    build_dependencies: BTreeMap<String, ::toml::Value>,
    target: BTreeMap<String, Target>,
}

#[derive(Deserialize)]
struct Project {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Target {
    dependencies: BTreeMap<String, ::toml::Value>,
    build_dependencies: BTreeMap<String, ::toml::Value>,
}

/// Which crates the project needs to be built and run; nothing where that cannot be told, as for a
/// workspace, whose members each have a file of their own.
fn needed(lock: &Lock, manifest: &[u8]) -> Option<Vec<bool>> {
    let manifest: Manifest = toml(manifest).ok()?;
    if manifest.workspace.is_some() {
        return None;
    }
    let name = manifest.package?.name;
    let targets = manifest.target.values();
    let direct: Vec<&str> = (manifest.dependencies.iter())
        .chain(&manifest.build_dependencies)
        .chain(targets.flat_map(|one| one.dependencies.iter().chain(&one.build_dependencies)))
        .map(|(name, about)| {
            let renamed = about.get("package").and_then(::toml::Value::as_str);
            renamed.unwrap_or(name)
        })
        .collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, one) in lock.package.iter().enumerate() {
        places.entry(&one.name).or_default().push(place);
    }
    let find = |dependency: &str| {
        let mut words = dependency.split(' ');
        let named = places.get(words.next().unwrap_or_default());
        let version = words.next();
        let fits =
            |place: &usize| version.is_none_or(|version| lock.package[*place].version == version);
        named
            .into_iter()
            .flatten()
            .copied()
            .filter(fits)
            .collect::<Vec<_>>()
    };
    let edges: Vec<Vec<usize>> = lock
        .package
        .iter()
        .map(|one| one.dependencies.iter().flat_map(|one| find(one)).collect())
        .collect();
    let own = lock
        .package
        .iter()
        .find(|one| one.name == name && one.source.is_none())?;
    // The lock knows which version of a crate the project itself needs.
    let roots = own.dependencies.iter().filter(|one| {
        let name = one.split(' ').next().unwrap_or_default();
        direct.contains(&name)
    });
    Some(reached(
        roots.flat_map(|one| find(one)).collect::<Vec<_>>(),
        &edges,
    ))
}
