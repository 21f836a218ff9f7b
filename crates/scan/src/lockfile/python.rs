//! Lockfiles of Python: requirements with exact versions, and the locks of Pipenv, Poetry and uv.

use super::{LeftOut, Nearby, Read, is_version, json, package, reached, text, toml};
use crate::package::Reading;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// Reads `requirements.txt`. Only a requirement of exactly one version says what will be there.
pub(super) fn requirements(contents: &[u8]) -> Read {
    let text = match contents {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => text(contents).into_owned(),
    };
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut reading = Reading::default();
    let (mut open, mut others) = (LeftOut::default(), LeftOut::default());
    for line in text.lines() {
        // A mark within a word belongs to an address.
        let line = match line.trim_start().starts_with('#') {
            true => "",
            false => line.split_once(" #").map_or(line, |(line, _)| line).trim(),
        };
        if line.is_empty() {
            continue;
        }
        if line.starts_with('-') {
            let included = ["-r", "--requirement", "-e", "--editable"];
            let word = line.split([' ', '=']).next().unwrap_or_default();
            if included.contains(&word) {
                others.push(line);
            }
            continue;
        }
        let requirement = line.split(" --").next().unwrap_or_default();
        let requirement = requirement.split(';').next().unwrap_or_default();
        let requirement: String = requirement.split_ascii_whitespace().collect();
        match exact(&requirement) {
            Some((name, version)) => reading.packages.push(package(name, version)),
            None => open.push(&requirement),
        }
    }
    open.tell(&mut reading, "requirements of no exact version");
    others.tell(&mut reading, "requirements that stand elsewhere");
    Ok(reading)
}

/// Text of two bytes for each character.
fn wide(bytes: &[u8], join: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| join(*pair)).collect();
    String::from_utf16_lossy(&units)
}

/// `name[extras]==version`, whatever else is demanded of the version.
fn exact(requirement: &str) -> Option<(&str, &str)> {
    let is_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-' | '_');
    let end = requirement.find(|one| !is_name(one))?;
    let (name, rest) = requirement.split_at(end);
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']')?.1,
        None => rest,
    };
    let rest = rest.trim_start_matches('(').trim_end_matches(')');
    let version = rest
        .split(',')
        .find_map(|one| one.strip_prefix("===").or_else(|| one.strip_prefix("==")))?;
    (!name.is_empty() && is_version(version)).then_some((name, version))
}

/// Reads `Pipfile.lock`.
pub(super) fn pipfile(contents: &[u8]) -> Read {
    #[derive(Deserialize)]
    struct Lock {
        #[serde(default)]
        default: BTreeMap<String, Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        version: Option<String>,
    }
    let lock: Lock = json(contents)?;
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    for (name, locked) in &lock.default {
        match &locked.version {
            Some(version) => {
                let version = version.trim_start_matches('=');
                reading.packages.push(package(name, version));
            }
            None => left_out.push(name),
        }
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}

/// Names compare without regard to case and to which mark parts their words.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Locked {
    name: String,
    version: Option<String>,
    /// Of old locks of Poetry: `main` or `dev`.
    category: Option<String>,
    /// Of new ones: all groups that need it.
    groups: Vec<String>,
    dependencies: Dependencies,
    optional_dependencies: BTreeMap<String, Dependencies>,
    source: BTreeMap<String, ::toml::Value>,
}

/// A table of names for Poetry, a list of tables for uv.
#[derive(Deserialize)]
#[serde(untagged)]
enum Dependencies {
    Names(BTreeMap<String, serde::de::IgnoredAny>),
    List(Vec<Dependency>),
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

impl Default for Dependencies {
    fn default() -> Self {
        Dependencies::List(Vec::new())
    }
}

impl Dependencies {
    fn names(&self) -> Vec<&str> {
        match self {
            Dependencies::Names(names) => names.keys().map(String::as_str).collect(),
            Dependencies::List(list) => list.iter().map(|one| one.name.as_str()).collect(),
        }
    }
}

impl Lock {
    fn places(&self) -> HashMap<String, Vec<usize>> {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, one) in self.package.iter().enumerate() {
            places.entry(plain(&one.name)).or_default().push(place);
        }
        places
    }

    /// Which packages are needed, directly or not, by those of these names.
    fn needed<'a>(&'a self, roots: impl Iterator<Item = &'a str>) -> Vec<bool> {
        let places = self.places();
        let find = |name: &str| places.get(&plain(name)).cloned().unwrap_or_default();
        let edges: Vec<Vec<usize>> = self
            .package
            .iter()
            .map(|one| one.needs().into_iter().flat_map(find).collect())
            .collect();
        reached(roots.flat_map(find).collect::<Vec<_>>(), &edges)
    }

    fn reading(&self, is_wanted: impl Fn(usize, &Locked) -> bool) -> Reading {
        let mut reading = Reading::default();
        let mut left_out = LeftOut::default();
        for (place, one) in self.package.iter().enumerate() {
            if one.is_project() || !is_wanted(place, one) {
                continue;
            }
            match one.version.as_deref().filter(|version| !version.is_empty()) {
                Some(version) => reading.packages.push(package(&one.name, version)),
                None => left_out.push(&one.name),
            }
        }
        left_out.tell(&mut reading, "packages without a version");
        reading
    }
}

impl Locked {
    fn needs(&self) -> Vec<&str> {
        let mut names = self.dependencies.names();
        names.extend(
            self.optional_dependencies
                .values()
                .flat_map(Dependencies::names),
        );
        names
    }

    /// Whether it is a directory of the project and not a package from elsewhere.
    fn is_project(&self) -> bool {
        let local = ["virtual", "editable", "directory", "workspace"];
        let kind = self.source.get("type").and_then(::toml::Value::as_str);
        kind == Some("directory") || local.iter().any(|key| self.source.contains_key(*key))
    }
}

/// Reads `poetry.lock`. Locks between the old and the new form do not say which packages are for
/// development alone; `pyproject.toml` does.
pub(super) fn poetry(contents: &[u8], near: &mut Nearby) -> Read {
    let lock: Lock = toml(contents)?;
    let tells = lock
        .package
        .iter()
        .any(|one| one.category.is_some() || !one.groups.is_empty());
    let project = if tells { None } else { near("pyproject.toml") };
    let names = project.and_then(|project| main_dependencies(&project));
    let needed = names.map(|names| lock.needed(names.iter().map(String::as_str)));
    Ok(lock.reading(|place, one| match &needed {
        Some(needed) => needed[place],
        None => {
            let main = one.groups.is_empty() || one.groups.iter().any(|group| group == "main");
            main && one.category.as_deref() != Some("dev")
        }
    }))
}

/// What a project of Poetry needs when it runs; nothing where the file does not say.
fn main_dependencies(contents: &[u8]) -> Option<Vec<String>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct File {
        project: Project,
        tool: Tool,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "kebab-case")]
    struct Project {
        dependencies: Vec<String>,
        optional_dependencies: BTreeMap<String, Vec<String>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Tool {
        poetry: Poetry,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Poetry {
        dependencies: BTreeMap<String, serde::de::IgnoredAny>,
    }
    let file: File = toml(contents).ok()?;
    let optional = file.project.optional_dependencies.into_values().flatten();
    let stated = file.project.dependencies.into_iter().chain(optional);
    let is_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-' | '_');
    let stated = stated.map(|one| {
        one.split(|part| !is_name(part))
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let names: Vec<String> = stated
        .chain(file.tool.poetry.dependencies.into_keys())
        .collect();
    (!names.is_empty()).then_some(names)
}

/// Reads `uv.lock`: what the project's own packages need, without what they need for development.
pub(super) fn uv(contents: &[u8]) -> Read {
    let lock: Lock = toml(contents)?;
    let members = lock.package.iter().filter(|one| one.is_project());
    let needed = lock.needed(members.map(|one| one.name.as_str()));
    let has_members = needed.contains(&true);
    Ok(lock.reading(|place, _| needed[place] || !has_members))
}
