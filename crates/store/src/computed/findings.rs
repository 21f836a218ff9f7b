//! Counting findings. The platforms of an image share most of their findings, and a workload must
//! mend each only once: findings of the same package, version, vulnerability and suppression count
//! as one. A report's findings are kept as a small set beside it, nine bytes each, so that the
//! counts of an image are made anew from its reports' sets and never from their texts.

use crate::fault::damaged;
use muster_apiserver::store::StoreError;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a finding counts as, worst first; a suppressed one counts as that and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    Critical,
    High,
    Medium,
    Low,
    Unknown,
    Suppressed,
}

const CLASSES: [(Class, &str); 6] = [
    (Class::Critical, "critical"),
    (Class::High, "high"),
    (Class::Medium, "medium"),
    (Class::Low, "low"),
    (Class::Unknown, "unknown"),
    (Class::Suppressed, "suppressed"),
];

/// How many findings there are of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) [i64; 6]);

impl Counts {
    /// Adds the counts of another container.
    pub(crate) fn add(&mut self, other: &Counts) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(count);
        }
    }

    /// As a report's `summary`.
    pub(crate) fn summary(&self) -> serde_json::Value {
        let counts = CLASSES.iter().zip(self.0);
        let fields = counts.map(|((_, name), count)| ((*name).to_owned(), count.into()));
        serde_json::Value::Object(fields.collect())
    }
}

/// The findings of one or more reports, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings(BTreeMap<u64, Class>);

const ENTRY: usize = 9;

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    vulnerabilities: Option<Vec<Vulnerability<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vulnerability<'a> {
    #[serde(borrow, default)]
    cve: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    package_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    installed_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    severity: Option<Cow<'a, str>>,
    #[serde(default)]
    suppressed: Option<bool>,
}

impl Findings {
    /// Reads the `results` of a report.
    pub(crate) fn read(results: &[u8]) -> Result<Self, serde_json::Error> {
        let parts: Vec<Part<'_>> = serde_json::from_slice(results)?;
        let mut findings = Findings::default();
        let found = parts.iter().flat_map(|part| &part.vulnerabilities);
        for vulnerability in found.flatten() {
            let class = match vulnerability.severity.as_deref().unwrap_or_default() {
                _ if vulnerability.suppressed == Some(true) => Class::Suppressed,
                "CRITICAL" => Class::Critical,
                "HIGH" => Class::High,
                "MEDIUM" => Class::Medium,
                "LOW" => Class::Low,
                _ => Class::Unknown,
            };
            findings.insert(identity(vulnerability), class);
        }
        Ok(findings)
    }

    /// Where reports differ over how bad a finding is, the worst counts.
    fn insert(&mut self, identity: u64, class: Class) {
        let known = self.0.entry(identity).or_insert(class);
        *known = class.min(*known);
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.0.len() * ENTRY);
        for (identity, class) in &self.0 {
            packed.extend_from_slice(&identity.to_be_bytes());
            packed.push(*class as u8);
        }
        packed
    }

    /// Adds the findings of another report, as [`Findings::pack`] wrote them.
    fn add(&mut self, packed: &[u8]) -> Result<(), StoreError> {
        let wrong = || damaged("the findings of a report are cut short");
        let (entries, rest) = packed.as_chunks::<ENTRY>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        for entry in entries {
            let (identity, class) = entry.split_first_chunk::<8>().ok_or_else(wrong)?;
            let class = class.first().and_then(|at| CLASSES.get(usize::from(*at)));
            self.insert(u64::from_be_bytes(*identity), class.ok_or_else(wrong)?.0);
        }
        Ok(())
    }

    /// Counts what several reports have found together.
    pub(crate) fn count(sets: &[Vec<u8>]) -> Result<Counts, StoreError> {
        let mut findings = Findings::default();
        for set in sets {
            findings.add(set)?;
        }
        Ok(findings.counts())
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for class in self.0.values() {
            if let Some(count) = counts.0.get_mut(*class as usize) {
                *count += 1;
            }
        }
        counts
    }
}

fn identity(vulnerability: &Vulnerability<'_>) -> u64 {
    let mut hash = Sha256::new();
    for text in [
        &vulnerability.package_name,
        &vulnerability.cve,
        &vulnerability.installed_version,
    ] {
        let text = text.as_deref().unwrap_or_default();
        // With its length, or two neighbours could trade letters.
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.update([u8::from(vulnerability.suppressed == Some(true))]);
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(findings: &[(&str, &str, &str, &str, bool)]) -> Findings {
        let list: Vec<_> = findings
            .iter()
            .map(|(package, cve, version, severity, suppressed)| {
                serde_json::json!({
                    "packageName": package, "cve": cve, "installedVersion": version,
                    "severity": severity, "suppressed": suppressed, "title": "\"x\"\n",
                })
            })
            .collect();
        let results =
            serde_json::json!([{"target": "a", "vulnerabilities": list}, {"target": "b"}]);
        Findings::read(results.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn findings_count_once_by_package_vulnerability_version_and_suppression() {
        let one = read(&[
            ("libssl", "CVE-1", "3.0", "HIGH", false),
            ("libssl", "CVE-1", "3.0", "HIGH", false),
            ("libssl", "CVE-1", "3.1", "LOW", false),
            ("libss", "lCVE-1", "3.0", "strange", false),
        ]);
        let other = read(&[
            ("libssl", "CVE-1", "3.0", "CRITICAL", false),
            ("libssl", "CVE-1", "3.0", "HIGH", true),
        ]);
        assert_eq!(one.counts(), Counts([0, 1, 0, 1, 1, 0]));
        let mut both = one.clone();
        both.add(&other.pack()).unwrap();
        assert_eq!(both.counts(), Counts([1, 0, 0, 1, 1, 1]));
        let mut again = Findings::default();
        again.add(&both.pack()).unwrap();
        assert_eq!(again, both);
        assert!(again.add(&[1, 2, 3]).is_err());
        assert!(again.add(&[0, 0, 0, 0, 0, 0, 0, 0, 6]).is_err());
    }

    #[test]
    fn results_of_another_shape_are_an_error() {
        for results in ["{}", "[1]", "[{\"vulnerabilities\":[{\"cve\":1}]}]", ""] {
            assert!(Findings::read(results.as_bytes()).is_err(), "{results}");
        }
        let nulls = br#"[{"vulnerabilities":[{"cve":"a","severity":null,"suppressed":null}]}]"#;
        assert_eq!(
            Findings::read(nulls).unwrap().counts(),
            Counts([0, 0, 0, 0, 1, 0])
        );
        assert_eq!(
            Findings::read(b"[{\"vulnerabilities\":null}]")
                .unwrap()
                .counts(),
            Counts::default()
        );
    }
}
