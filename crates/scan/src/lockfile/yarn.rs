//! `yarn.lock`, in the form of its first version, which is Yarn's own, and in the later one, which
//! is close to YAML. Both are lines, and a line's indentation says what it is. Which packages are
//! for development alone stands in `package.json`, not here.

use super::{LeftOut, Nearby, Read, is_version, package, reached, text};
use crate::package::Reading;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

#[derive(Default)]
struct Entry<'a> {
    /// `NAME@RANGE`, each of which this entry answers.
    patterns: Vec<&'a str>,
    version: &'a str,
    /// `NAME@PROTOCOL:VERSION`, in the later form.
    resolution: &'a str,
    dependencies: Vec<(&'a str, &'a str)>,
}

pub(super) fn read(contents: &[u8], near: &mut Nearby) -> Read {
    let text = text(contents);
    let entries = entries(&text);
    let wanted = wanted(&entries, near);
    let mut reading = Reading::default();
    let mut left_out = LeftOut::default();
    for (place, entry) in entries.iter().enumerate() {
        let Some((name, place_of_origin)) = entry.identity() else {
            continue;
        };
        let is_project = ["workspace:", "link:", "portal:", "file:", "patch:"]
            .iter()
            .any(|protocol| place_of_origin.starts_with(protocol));
        if is_project || wanted.as_ref().is_some_and(|wanted| !wanted[place]) {
            continue;
        }
        match is_version(entry.version) {
            true => reading.packages.push(package(name, entry.version)),
            false => left_out.push(name),
        }
    }
    left_out.tell(&mut reading, "packages without a version");
    Ok(reading)
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut section = "";
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let depth = line.len() - line.trim_start_matches(' ').len();
        if depth == 0 {
            section = "";
            let patterns = content.trim_end_matches(':').split(',');
            let patterns = patterns.map(unquoted).filter(|one| *one != "__metadata");
            entries.push(Entry {
                patterns: patterns.collect(),
                ..Entry::default()
            });
            continue;
        }
        let Some(entry) = entries.last_mut() else {
            continue;
        };
        let (key, value) = pair(content);
        match depth {
            2 => {
                section = key;
                match key {
                    "version" => entry.version = value,
                    "resolution" => entry.resolution = value,
                    _ => {}
                }
            }
            4 if matches!(section, "dependencies" | "optionalDependencies") => {
                entry.dependencies.push((key, value));
            }
            _ => {}
        }
    }
    entries.retain(|entry| !entry.patterns.is_empty());
    entries
}

/// `key value`, `key: value`, and either of them in quotes.
fn pair(content: &str) -> (&str, &str) {
    let (key, value) = match content
        .strip_prefix('"')
        .and_then(|rest| rest.split_once('"'))
    {
        Some((key, rest)) => (key, rest.trim_start_matches(':')),
        None => content.split_once([' ', ':']).unwrap_or((content, "")),
    };
    (key, unquoted(value.trim_start_matches(':')))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// Name and range of a pattern; the name may start with the mark between them.
fn split(pattern: &str) -> Option<(&str, &str)> {
    let mark = pattern.get(1..)?.find('@')? + 1;
    Some((&pattern[..mark], &pattern[mark + 1..]))
}

impl<'a> Entry<'a> {
    /// The package's own name, whatever it is called here, and where it comes from.
    fn identity(&self) -> Option<(&'a str, &'a str)> {
        if !self.resolution.is_empty() {
            return split(self.resolution);
        }
        let (name, range) = split(self.patterns.first()?)?;
        let alias = range.strip_prefix("npm:").and_then(split);
        Some((alias.map_or(name, |(name, _)| name), range))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Project {
    dependencies: BTreeMap<String, String>,
    optional_dependencies: BTreeMap<String, String>,
    workspaces: Option<serde_json::Value>,
}

/// Which entries the project needs when it runs; nothing where that cannot be told.
fn wanted(entries: &[Entry], near: &mut Nearby) -> Option<Vec<bool>> {
    let project: Project = serde_json::from_slice(&near("package.json")?).ok()?;
    let mut projects = Vec::new();
    if project.workspaces.is_some() {
        // The later form names the directories of the project's parts.
        for entry in entries {
            if let Some((_, directory)) = entry.resolution.rsplit_once("@workspace:")
                && directory != "."
            {
                let file = near(&format!("{directory}/package.json"))?;
                projects.push(serde_json::from_slice(&file).ok()?);
            }
        }
        if projects.is_empty() {
            return None;
        }
    }
    projects.push(project);
    let mut places = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        for pattern in &entry.patterns {
            places.insert((*pattern).to_owned(), place);
        }
    }
    let find = |(name, range): (&str, &str)| {
        let plain = format!("{name}@{range}");
        let found = places
            .get(&plain)
            .or_else(|| places.get(&format!("{name}@npm:{range}")));
        found.copied()
    };
    let edges: Vec<Vec<usize>> = entries
        .iter()
        .map(|entry| {
            entry
                .dependencies
                .iter()
                .copied()
                .filter_map(find)
                .collect()
        })
        .collect();
    let roots = projects.iter().flat_map(|project| {
        let needed = project
            .dependencies
            .iter()
            .chain(&project.optional_dependencies);
        needed.filter_map(|(name, range)| find((name, range)))
    });
    Some(reached(roots.collect::<Vec<_>>(), &edges))
}
