//! The rules of languages: the name that advisories use, and ranges of versions that are affected,
//! fixed or were never affected.

use crate::package::{Ecosystem, Package};
use crate::version;
use crate::version::range::{Compare, Range};
use crate::vulnerability::{Advisory, Database, DatabaseError, Stream};

/// How the packages of one ecosystem are matched.
pub(super) struct Rules {
    stream: Stream,
    name: fn(&str) -> String,
    compare: Compare,
}

/// The rules for an ecosystem; nothing where its versions cannot be compared.
pub(super) fn rules(ecosystem: Ecosystem) -> Option<Rules> {
    let lower: fn(&str) -> String = str::to_lowercase;
    let rules = |stream, name, compare| Rules {
        stream: Stream::Ecosystem(stream),
        name,
        compare,
    };
    Some(match ecosystem {
        Ecosystem::Go => rules("go", str::to_owned, version::semantic::compare_go),
        Ecosystem::Npm => rules("npm", lower, version::semantic::compare),
        Ecosystem::Python => rules(
            "pip",
            |name| name.to_lowercase().replace('_', "-"),
            version::python::compare,
        ),
        Ecosystem::Maven => rules("maven", lower, version::maven::compare),
        Ecosystem::Ruby => rules("rubygems", lower, version::ruby::compare),
        Ecosystem::NuGet => rules("nuget", lower, version::semantic::compare_nuget),
        Ecosystem::Cargo => rules("cargo", lower, version::semantic::compare),
        _ => return None,
    })
}

impl Rules {
    /// The advisories that hit a package. One without a version is not judged.
    pub fn matched(
        &self,
        package: &Package,
        database: &dyn Database,
    ) -> Result<Vec<Advisory>, DatabaseError> {
        if (self.compare)(&package.version, &package.version).is_none() {
            return Ok(Vec::new());
        }
        let mut advisories = database.advisories(&self.stream, &(self.name)(&package.name))?;
        advisories.retain(|advisory| self.hits(advisory, &package.version));
        Ok(advisories)
    }

    fn hits(&self, advisory: &Advisory, version: &str) -> bool {
        let vulnerable = &advisory.vulnerable_versions;
        let patched = &advisory.patched_versions;
        // An empty range is one that nobody knows, and so takes in everything.
        if vulnerable.iter().chain(patched).any(String::is_empty) {
            return true;
        }
        let within = |ranges: &[String]| {
            let ranges = ranges.iter().filter_map(|text| Range::parse(text));
            ranges
                .into_iter()
                .any(|range| range.contains(version, self.compare))
        };
        if !vulnerable.is_empty() && !within(vulnerable) {
            return false;
        }
        let safe = [patched.as_slice(), &advisory.unaffected_versions].concat();
        if safe.is_empty() {
            return !vulnerable.is_empty();
        }
        !within(&safe)
    }
}

/// The versions that are free of it: those that the advisory lists, else where the affected ranges
/// end.
pub(super) fn fixed_versions(advisory: &Advisory) -> Vec<String> {
    if !advisory.patched_versions.is_empty() {
        return advisory.patched_versions.clone();
    }
    let ranges = advisory.vulnerable_versions.iter();
    ranges
        .filter_map(|text| Range::parse(text))
        .flat_map(|range| range.ends().map(Into::into).collect::<Vec<_>>())
        .collect()
}
