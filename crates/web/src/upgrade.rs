//! What to upgrade, most effect first. A package is upgraded once, so its findings count together: the
//! target is the smallest version that ends all of them that can be ended. Where versions cannot be
//! compared, all that were named are listed. Pure.

use crate::finding::Finding;
use muster_scan::package::Ecosystem;
use muster_scan::version::{self, range::Compare};
use muster_scan::vulnerability::Severity;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// Findings by severity, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Counts {
    /// Critical findings.
    pub critical: usize,
    /// High findings.
    pub high: usize,
    /// Medium findings.
    pub medium: usize,
    /// Low findings.
    pub low: usize,
    /// Findings nobody has rated.
    pub unknown: usize,
}

/// A package to upgrade in one container.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The container.
    pub container: String,
    /// What it runs.
    pub image: String,
    /// The package.
    pub package: String,
    /// What sort of package it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its version now.
    pub installed_version: String,
    /// One version if it is known to end all of it, else the fixes as they were named.
    pub to: Vec<String>,
    /// How many findings that ends.
    pub ends: Counts,
    /// Which ones.
    pub vulnerabilities: Vec<String>,
}

/// What can be done about some findings.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrades {
    /// What to upgrade, most effect first.
    pub upgrades: Vec<Upgrade>,
    /// Findings that no upgrade ends.
    pub without_fix: Counts,
    /// Findings that somebody declared harmless here.
    pub suppressed: usize,
}

/// A finding of a container.
pub struct Placed {
    /// The container.
    pub container: String,
    /// What it runs.
    pub image: String,
    /// What was found.
    pub finding: Finding,
}

/// The severity of that name; what nobody knows is unknown.
pub fn rated(name: &str) -> Severity {
    Severity::named(name).unwrap_or(Severity::Unknown)
}

impl Counts {
    fn add(&mut self, severity: &str) {
        self.count(rated(severity), 1);
    }

    /// Counts some more of a severity.
    pub fn count(&mut self, severity: Severity, more: usize) {
        let count = match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
            Severity::Unknown => &mut self.unknown,
        };
        *count += more;
    }

    /// Each count, worst first.
    pub fn each(&self) -> [(usize, Severity); 5] {
        [
            (self.critical, Severity::Critical),
            (self.high, Severity::High),
            (self.medium, Severity::Medium),
            (self.low, Severity::Low),
            (self.unknown, Severity::Unknown),
        ]
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.each().iter().map(|(count, _)| count).sum()
    }
}

/// One installed package of one container.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    container: String,
    image: String,
    name: String,
    installed: String,
    kind: String,
}

/// Ranks what is to be done about findings; what two platforms share counts once.
pub fn rank(placed: Vec<Placed>) -> Upgrades {
    let mut outcome = Upgrades::default();
    let mut packages: BTreeMap<Package, BTreeMap<String, Finding>> = BTreeMap::new();
    let mut suppressed = BTreeSet::new();
    for Placed {
        container,
        image,
        finding,
    } in placed
    {
        let package = Package {
            container,
            image,
            name: finding.package_name.clone(),
            installed: finding.installed_version.clone(),
            kind: finding.kind.clone(),
        };
        if finding.suppressed {
            suppressed.insert((package, finding.cve));
            continue;
        }
        let known = packages.entry(package).or_default();
        known.entry(finding.cve.clone()).or_insert(finding);
    }
    outcome.suppressed = suppressed.len();
    for (package, findings) in packages {
        let compare = findings.values().find_map(order);
        let (fixed, unfixed): (Vec<_>, Vec<_>) = findings
            .into_values()
            .map(|finding| (fixes(&finding, compare), finding))
            .partition(|(fixes, _)| !fixes.is_empty());
        for (_, finding) in &unfixed {
            outcome.without_fix.add(&finding.severity);
        }
        if fixed.is_empty() {
            continue;
        }
        let mut ends = Counts::default();
        for (_, finding) in &fixed {
            ends.add(&finding.severity);
        }
        let lists: Vec<Vec<String>> = fixed.iter().map(|(fixes, _)| fixes.clone()).collect();
        let to = match compare.and_then(|compare| smallest(&lists, compare)) {
            Some(version) => vec![version],
            None => lists
                .into_iter()
                .flatten()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        };
        outcome.upgrades.push(Upgrade {
            container: package.container,
            image: package.image,
            package: package.name,
            kind: package.kind,
            installed_version: package.installed,
            to,
            ends,
            vulnerabilities: fixed.into_iter().map(|(_, finding)| finding.cve).collect(),
        });
    }
    outcome.upgrades.sort_by(|left, right| {
        let effect = |upgrade: &Upgrade| Reverse(upgrade.ends);
        let name = |upgrade: &Upgrade| (upgrade.container.clone(), upgrade.package.clone());
        effect(left)
            .cmp(&effect(right))
            .then_with(|| name(left).cmp(&name(right)))
    });
    outcome
}

/// How the versions of a finding's package compare, if that is known.
fn order(finding: &Finding) -> Option<Compare> {
    let kind = finding.purl.strip_prefix("pkg:")?.split('/').next()?;
    Ecosystem::of_purl_type(kind).map(version::order)
}

/// The versions that are free of a finding and no step back.
fn fixes(finding: &Finding, compare: Option<Compare>) -> Vec<String> {
    let installed = &finding.installed_version;
    let is_later = |fix: &&String| {
        let ordering = compare.and_then(|compare| compare(fix, installed));
        !fix.is_empty() && ordering.is_none_or(|ordering| ordering == Ordering::Greater)
    };
    let fixes = finding.fixed_versions.iter();
    fixes.filter(is_later).cloned().collect()
}

/// The smallest version named that ends every finding; none where versions do not compare.
fn smallest(lists: &[Vec<String>], compare: Compare) -> Option<String> {
    let mut candidates: Vec<&String> = lists.iter().flatten().collect();
    for left in &candidates {
        for right in &candidates {
            compare(left, right)?;
        }
    }
    let compared = |left: &str, right: &str| compare(left, right).unwrap_or(Ordering::Equal);
    candidates.sort_by(|left, right| compared(left, right));
    let ends_all = |candidate: &&&String| {
        let mut lists = lists.iter();
        lists.all(|fixes| ends(candidate, fixes, compared))
    };
    candidates
        .iter()
        .find(ends_all)
        .map(|version| (**version).clone())
}

/// Whether a version is free of a finding that was fixed in these. Where several lines of versions
/// were fixed, a version counts as fixed only within one of these lines, or beyond all of them.
fn ends(version: &str, fixes: &[String], compared: impl Fn(&str, &str) -> Ordering) -> bool {
    let reaches = |fix: &String| compared(version, fix) != Ordering::Less;
    let line = |version: &str| {
        let numbers = version.split(['.', '-', '+', '~', ':']).take(2);
        numbers.map(str::to_owned).collect::<Vec<_>>()
    };
    fixes.iter().all(reaches)
        || fixes.iter().any(|fix| {
            reaches(fix)
                && (compared(version, fix) == Ordering::Equal || line(fix) == line(version))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(package: &str, cve: &str, severity: &str, fixed: &[&str]) -> Placed {
        let (kind, name) = package.split_once(' ').unwrap();
        Placed {
            container: "main".into(),
            image: "app:1".into(),
            finding: Finding {
                cve: cve.into(),
                package_name: name.into(),
                installed_version: "1.2.0".into(),
                fixed_versions: fixed.iter().map(|&version| version.to_owned()).collect(),
                severity: severity.into(),
                purl: format!("pkg:{kind}/{name}@1.2.0"),
                kind: kind.into(),
                ..Finding::default()
            },
        }
    }

    #[test]
    fn the_upgrade_with_most_effect_comes_first_and_findings_count_once() {
        let mut harmless = finding("deb zlib", "CVE-9", "HIGH", &[]);
        harmless.finding.suppressed = true;
        let outcome = rank(vec![
            finding("npm a", "CVE-1", "LOW", &["1.2.1"]),
            finding("npm a", "CVE-2", "MEDIUM", &["1.3.0"]),
            finding("deb openssl", "CVE-3", "CRITICAL", &["1.2.10"]),
            finding("deb openssl", "CVE-4", "HIGH", &["1.2.9"]),
            finding("deb openssl", "CVE-4", "HIGH", &["1.2.9"]),
            finding("deb openssl", "CVE-5", "LOW", &[]),
            finding("npm b", "CVE-6", "MEDIUM", &["2.0.0"]),
            // Fixed in what is older than what is installed: no upgrade ends that.
            finding("npm c", "CVE-7", "odd", &["1.0.0"]),
            harmless,
        ]);
        let ranked = outcome.upgrades.iter();
        let ranked: Vec<_> = ranked
            .map(|one| (one.package.as_str(), one.to.join(" "), one.ends.total()))
            .collect();
        assert_eq!(
            ranked,
            [
                ("openssl", "1.2.10".to_owned(), 2),
                ("a", "1.3.0".to_owned(), 2),
                ("b", "2.0.0".to_owned(), 1)
            ]
        );
        assert_eq!(outcome.upgrades[0].vulnerabilities, ["CVE-3", "CVE-4"]);
        assert_eq!(
            (outcome.without_fix.low, outcome.without_fix.unknown),
            (1, 1)
        );
        assert_eq!(outcome.suppressed, 1);
    }

    #[test]
    fn a_version_between_two_lines_of_fixes_is_not_trusted() {
        for (lists, expected) in [
            (vec![vec!["1.2.5", "1.3.1"], vec!["1.2.7"]], Some("1.2.7")),
            // 1.3.0 is beyond 1.2.5 and yet has the flaw.
            (vec![vec!["1.2.5", "1.3.1"], vec!["1.3.0"]], Some("1.3.1")),
            (vec![vec!["1.2.5"], vec!["2.0.0"]], Some("2.0.0")),
            (vec![vec!["1.2.5"], vec!["not a version"]], None),
        ] {
            let lists: Vec<Vec<String>> = lists
                .into_iter()
                .map(|list| list.into_iter().map(str::to_owned).collect())
                .collect();
            let found = smallest(&lists, version::order(Ecosystem::Npm));
            assert_eq!(found.as_deref(), expected, "{lists:?}");
        }
    }

    #[test]
    fn versions_of_an_unknown_order_are_listed() {
        let outcome = rank(vec![
            finding("strange a", "CVE-1", "LOW", &["x9"]),
            finding("strange a", "CVE-2", "LOW", &["x10"]),
        ]);
        assert_eq!(outcome.upgrades[0].to, ["x10", "x9"]);
    }
}
