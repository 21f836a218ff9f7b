//! The rules of languages: the name that advisories use, and ranges of versions that are affected,
//! fixed or were never affected.

use crate::package::{Ecosystem, Package};
use crate::version;
use crate::version::range::{Compare, Dialect, Range, any};
use crate::vulnerability::{Advisory, Stream};
use std::borrow::Cow;
use std::collections::HashMap;

/// How the packages of one ecosystem are matched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The name of its streams, and the type of its package URLs.
    stream: &'static str,
    kind: &'static str,
    name: fn(&str) -> Cow<'_, str>,
    compare: Compare,
    dialect: Dialect,
}

/// Every ecosystem that advisories are published for.
const ALL: [Rules; 15] = {
    use version::{composer, maven, python, ruby, semantic};
    const fn rules(
        stream: &'static str,
        kind: &'static str,
        name: fn(&str) -> Cow<'_, str>,
        compare: Compare,
        dialect: Dialect,
    ) -> Rules {
        Rules {
            stream,
            kind,
            name,
            compare,
            dialect,
        }
    }
    [
        rules("go", "golang", same, semantic::compare_go, Dialect::Plain),
        rules("npm", "npm", lower, semantic::compare, Dialect::Npm),
        rules(
            "pip",
            "pypi",
            python_name,
            python::compare_with_bound,
            Dialect::Python,
        ),
        rules("maven", "maven", lower, maven::compare, Dialect::Plain),
        rules("rubygems", "gem", lower, ruby::compare, Dialect::Ruby),
        rules(
            "nuget",
            "nuget",
            lower,
            semantic::compare_nuget,
            Dialect::Plain,
        ),
        rules(
            "cargo",
            "cargo",
            lower,
            semantic::compare_loose,
            Dialect::Plain,
        ),
        rules(
            "composer",
            "composer",
            lower,
            composer::compare,
            Dialect::Plain,
        ),
        rules(
            "erlang",
            "hex",
            lower,
            semantic::compare_loose,
            Dialect::Plain,
        ),
        rules("pub", "pub", lower, semantic::compare_loose, Dialect::Plain),
        rules(
            "swift",
            "swift",
            swift_name,
            semantic::compare_loose,
            Dialect::Plain,
        ),
        rules(
            "conan",
            "conan",
            lower,
            semantic::compare_loose,
            Dialect::Plain,
        ),
        rules("cocoapods", "cocoapods", same, ruby::compare, Dialect::Ruby),
        rules(
            "julia",
            "julia",
            same,
            semantic::compare_loose,
            Dialect::Plain,
        ),
        rules(
            "bitnami",
            "bitnami",
            lower,
            semantic::compare_loose,
            Dialect::Plain,
        ),
    ]
};

fn same(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

fn lower(name: &str) -> Cow<'_, str> {
    match name.chars().any(char::is_uppercase) {
        true => Cow::Owned(name.to_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// Dashes and underscores are the same.
fn python_name(name: &str) -> Cow<'_, str> {
    match name.contains('_') {
        true => Cow::Owned(name.to_lowercase().replace('_', "-")),
        false => lower(name),
    }
}

/// A package is named by its repository, of which advisories write less than manifests do.
fn swift_name(name: &str) -> Cow<'_, str> {
    let name = name.strip_prefix("https://").unwrap_or(name);
    Cow::Borrowed(name.strip_suffix(".git").unwrap_or(name))
}

/// The rules for an ecosystem; nothing where nobody publishes advisories for it.
pub(super) fn rules(ecosystem: Ecosystem) -> Option<Rules> {
    let kind = ecosystem.purl_type();
    ALL.iter().find(|rules| rules.kind == kind).copied()
}

/// Whether advisories are published for packages of a package URL type.
pub(super) fn is_published(kind: &str) -> bool {
    ALL.iter().any(|rules| rules.kind == kind)
}

/// The stream of that name, where it is a language's.
pub(super) fn stream(name: &str) -> Option<Stream> {
    let rules = ALL.iter().find(|rules| rules.stream == name)?;
    Some(Stream::Ecosystem(rules.stream))
}

/// The versions that an advisory speaks of, taken apart.
#[derive(Debug, PartialEq)]
pub(super) enum Ranges {
    /// It does not know which, and so speaks of all.
    All,
    /// It speaks of none.
    Nothing,
    /// One of them cannot be parsed.
    Invalid,
    Some {
        /// All where there are none.
        vulnerable: Vec<Range>,
        safe: Vec<Range>,
    },
}

impl Rules {
    pub fn stream(&self) -> Stream {
        Stream::Ecosystem(self.stream)
    }

    /// The name that is asked for.
    pub fn name<'a>(&self, package: &'a Package) -> Cow<'a, str> {
        (self.name)(&package.name)
    }

    /// Whether the ecosystem can order a version.
    pub fn is_version(&self, version: &str) -> bool {
        (self.compare)(version, version).is_some()
    }

    /// Leaves of several sources that speak of one vulnerability the last.
    pub fn last_sources(advisories: &mut Vec<Advisory>) {
        let mut last = HashMap::new();
        for advisory in advisories.iter() {
            last.insert(advisory.id.clone(), advisory.source.name.clone());
        }
        advisories.retain(|advisory| last.get(&advisory.id) == Some(&advisory.source.name));
    }

    /// Takes apart the ranges of an advisory.
    pub fn ranges(&self, advisory: &Advisory) -> Ranges {
        let vulnerable = &advisory.vulnerable_versions;
        let patched = &advisory.patched_versions;
        if vulnerable.iter().chain(patched).any(String::is_empty) {
            return Ranges::All;
        }
        let parse = |texts: &mut dyn Iterator<Item = &String>| {
            texts
                .map(|text| Range::parse_as(text, self.dialect))
                .collect::<Option<Vec<Range>>>()
        };
        let safe = &mut patched.iter().chain(&advisory.unaffected_versions);
        match (parse(&mut vulnerable.iter()), parse(safe)) {
            (Some(vulnerable), Some(safe)) if vulnerable.len() + safe.len() > 0 => {
                Ranges::Some { vulnerable, safe }
            }
            (Some(_), Some(_)) => Ranges::Nothing,
            _ => Ranges::Invalid,
        }
    }

    /// The places of the ranges that take in a version, and the place of one for which that depends
    /// on a range that cannot be parsed.
    pub fn matched(&self, ranges: &[Ranges], version: &str) -> (Vec<usize>, Option<usize>) {
        let (mut places, mut unclear) = (Vec::new(), None);
        for (place, ranges) in ranges.iter().enumerate() {
            match self.hits(ranges, version) {
                Some(true) => places.push(place),
                Some(false) => {}
                None => unclear = unclear.or(Some(place)),
            }
        }
        (places, unclear)
    }

    /// Whether ranges take in the version of a package; nothing if that depends on a range that
    /// cannot be parsed.
    fn hits(&self, ranges: &Ranges, version: &str) -> Option<bool> {
        let within = |ranges: &[Range]| {
            let ranges = ranges.iter();
            any(ranges.map(|range| range.decide(version, self.compare)))
        };
        match ranges {
            Ranges::All => Some(true),
            Ranges::Nothing => Some(false),
            Ranges::Invalid => None,
            Ranges::Some { vulnerable, safe } => {
                let is_vulnerable = match vulnerable.is_empty() {
                    true => Some(true),
                    false => within(vulnerable),
                };
                match is_vulnerable {
                    Some(false) => Some(false),
                    // A range of safe versions that cannot be parsed makes nothing safe.
                    Some(true) => Some(within(safe) != Some(true)),
                    None if within(safe) == Some(true) => Some(false),
                    None => None,
                }
            }
        }
    }
}

/// The versions that are free of it: those that the advisory lists, else where the affected ranges
/// end.
pub(super) fn fixed_versions(advisory: &Advisory) -> Vec<String> {
    let mut fixed: Vec<String> = Vec::new();
    let mut add = |version: &str| {
        if !fixed.iter().any(|one| one == version) {
            fixed.push(version.to_owned());
        }
    };
    if advisory.patched_versions.is_empty() {
        for text in &advisory.vulnerable_versions {
            for end in Range::ends_in(text) {
                add(end);
            }
        }
    } else {
        for version in &advisory.patched_versions {
            add(version);
        }
    }
    fixed
}
