//! Packages that were not matched, by reason. A package without findings is only clean if it was
//! matched, so every reason why one was not is counted and named.

use super::sources;
use crate::image::Component;
use crate::sbom::Unsupported;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most packages that are named for one reason.
pub const MAX_NAMED: usize = 10;
/// The most characters of a name, a version or an identifier.
const MAX_LENGTH: usize = 200;

/// Why packages were not matched.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Reason {
    /// The vulnerability data has nothing for their distribution or ecosystem.
    #[default]
    NoData,
    /// We have no rules for their distribution or type.
    NoRules,
    /// Their version cannot be parsed, and there are advisories for them.
    InvalidVersion,
    /// The version range of an advisory for them cannot be parsed.
    InvalidRange,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 4] = [
        Reason::NoData,
        Reason::NoRules,
        Reason::InvalidVersion,
        Reason::InvalidRange,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NoData => "NoData",
            Reason::NoRules => "NoRules",
            Reason::InvalidVersion => "InvalidVersion",
            Reason::InvalidRange => "InvalidRange",
        }
    }
}

/// Packages of one type that were not matched for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unmatched {
    /// Why.
    pub reason: Reason,
    /// Their package URL type, such as `deb`; empty if they have no package URL.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of packages.
    pub count: u64,
    /// Whether a data source exists for them: with other data or another version they could have
    /// been matched.
    pub matchable: bool,
    /// The reason in words.
    pub message: String,
    /// Some of the packages.
    pub packages: Vec<UnmatchedPackage>,
}

/// A package that was not matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnmatchedPackage {
    /// Its name.
    pub name: String,
    /// Its version; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The advisory whose range cannot be parsed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advisory: String,
}

impl Unmatched {
    /// The whole sentence: how many packages were not matched, and why.
    pub fn sentence(&self) -> String {
        let kind = match self.kind.as_str() {
            "" => String::new(),
            kind => format!("{kind} "),
        };
        let (count, message) = (self.count, &self.message);
        match count {
            1 => format!("1 {kind}package was not matched: {message}"),
            _ => format!("{count} {kind}packages were not matched: {message}"),
        }
    }

    /// Whether nothing at all was compared. Of an advisory with an invalid range the others were.
    pub fn is_whole(&self) -> bool {
        self.reason != Reason::InvalidRange
    }
}

/// Why some packages cannot be matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub reason: Reason,
    pub matchable: bool,
    pub message: String,
}

impl Gap {
    pub fn new(reason: Reason, matchable: bool, message: impl Into<String>) -> Self {
        Gap {
            reason,
            matchable,
            message: message.into(),
        }
    }

    pub fn no_data(of: impl std::fmt::Display) -> Self {
        let message = format!("the vulnerability data has nothing for {of}");
        Gap::new(Reason::NoData, true, message)
    }

    /// A package of another maker than the distribution.
    pub fn foreign() -> Self {
        let message = "the advisories of the distribution do not cover packages of other makers";
        Gap::new(Reason::NoRules, false, message)
    }
}

/// What went wrong with the comparison of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Its version cannot be parsed.
    Version,
    /// The range of the advisory cannot be parsed.
    Range(String),
    /// It is of a module, and does not say of which.
    Module,
}

impl Problem {
    fn gap(&self) -> Gap {
        match self {
            Problem::Version => Gap::new(
                Reason::InvalidVersion,
                true,
                "the installed version cannot be parsed",
            ),
            Problem::Range(_) => Gap::new(
                Reason::InvalidRange,
                true,
                "the version range of an advisory cannot be parsed",
            ),
            Problem::Module => Gap::new(
                Reason::NoRules,
                false,
                "a build of a module does not name its module",
            ),
        }
    }
}

/// Collects what was not matched.
#[derive(Debug, Default)]
pub(super) struct Collector {
    groups: Vec<Unmatched>,
}

impl Collector {
    pub fn add(&mut self, component: &Component, gap: &Gap) {
        self.push(component, gap, "");
    }

    pub fn problem(&mut self, component: &Component, problem: &Problem) {
        let advisory = match problem {
            Problem::Range(id) => id,
            _ => "",
        };
        self.push(component, &problem.gap(), advisory);
    }

    fn push(&mut self, component: &Component, gap: &Gap, advisory: &str) {
        let kind = component.detector.ecosystem().purl_type();
        let group = self.group(kind, gap);
        group.count = group.count.saturating_add(1);
        if group.packages.len() >= MAX_NAMED {
            return;
        }
        let package = UnmatchedPackage {
            name: cut(&component.package.name),
            version: cut(&component.package.version),
            advisory: cut(advisory),
        };
        if !group.packages.contains(&package) {
            group.packages.push(package);
        }
    }

    /// Adds the packages of an SBOM whose type we do not know.
    pub fn unsupported(&mut self, unsupported: &BTreeMap<String, Unsupported>) {
        for (kind, one) in unsupported {
            let message = match kind.as_str() {
                "" => "the SBOM gives no package URL".to_owned(),
                kind => format!("packages of type {kind} are not supported"),
            };
            let gap = Gap::new(Reason::NoRules, sources::cover_type(kind), message);
            let group = self.group(kind, &gap);
            group.count = group.count.saturating_add(one.count);
            let packages = one.packages.iter().map(|(name, version)| UnmatchedPackage {
                name: cut(name),
                version: cut(version),
                advisory: String::new(),
            });
            group.packages.extend(packages.take(MAX_NAMED));
        }
    }

    fn group(&mut self, kind: &str, gap: &Gap) -> &mut Unmatched {
        let is_it = |one: &Unmatched| {
            one.reason == gap.reason && one.kind == kind && one.message == gap.message
        };
        let place = match self.groups.iter().position(is_it) {
            Some(place) => place,
            None => {
                self.groups.push(Unmatched {
                    reason: gap.reason,
                    kind: kind.to_owned(),
                    matchable: gap.matchable,
                    message: gap.message.clone(),
                    ..Unmatched::default()
                });
                self.groups.len() - 1
            }
        };
        &mut self.groups[place]
    }

    /// The groups in a fixed order: by reason, then by type.
    pub fn finish(mut self) -> Vec<Unmatched> {
        self.groups.sort_by(|left, right| {
            let order = left.reason.cmp(&right.reason);
            let order = order.then_with(|| left.kind.cmp(&right.kind));
            order.then_with(|| left.message.cmp(&right.message))
        });
        self.groups
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::{Detector, Package};

    fn component(name: &str, version: &str) -> Component {
        Component {
            detector: Detector::Dpkg,
            package: Package::new(name, version),
            path: String::new(),
            layer: None,
        }
    }

    #[test]
    fn many_packages_are_counted_and_few_of_them_named() {
        let mut collector = Collector::default();
        let gap = Gap::no_data("debian 12.1");
        for number in 0..1000 {
            collector.add(&component(&format!("lib{number}"), "1"), &gap);
        }
        let long = component(&"x".repeat(10_000), "broken");
        collector.problem(&long, &Problem::Version);
        let groups = collector.finish();
        let told: Vec<_> = groups.iter().map(Unmatched::sentence).collect();
        assert_eq!(
            told,
            [
                "1000 deb packages were not matched: the vulnerability data has nothing for debian 12.1",
                "1 deb package was not matched: the installed version cannot be parsed",
            ]
        );
        assert_eq!(groups[0].packages.len(), MAX_NAMED);
        assert_eq!(groups[1].packages[0].name.len(), MAX_LENGTH);
    }

    #[test]
    fn reasons_are_written_as_they_are_named() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }
}
