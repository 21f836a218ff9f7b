//! Findings as reports tell them, as far as anybody reads them here. Nobody has vouched for the shape of
//! results: those of another one are none.

use muster_api::{image, link};
use muster_scan::vulnerability::is_alias;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The most aliases that are read of a finding, and the longest.
const MAX_ALIASES: usize = 32;
const MAX_ALIAS: usize = 64;

/// A finding.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// Identifier of the vulnerability.
    pub cve: String,
    /// Other identifiers, as the report has them; see [`Finding::aliases`].
    #[serde(skip_serializing, rename = "aliases")]
    pub declared: Vec<String>,
    /// Name of the package.
    pub package_name: String,
    /// Its version.
    pub installed_version: String,
    /// Versions that are free of it.
    pub fixed_versions: Vec<String>,
    /// How bad it is.
    pub severity: String,
    /// Somebody declared it harmless here.
    pub suppressed: bool,
    /// Package URL of the package.
    #[serde(skip_serializing)]
    pub purl: String,
    /// Where to read more.
    #[serde(skip_serializing)]
    pub references: Vec<String>,
    /// In a line.
    #[serde(skip_serializing)]
    pub title: String,
    /// In full.
    #[serde(skip_serializing)]
    pub description: String,
    /// What the vendor does about it.
    #[serde(skip_serializing)]
    pub status: String,
    /// File in the image that declares the package.
    #[serde(skip_serializing)]
    pub package_path: String,
    /// The layer that brought the package.
    #[serde(skip_serializing, rename = "diffID")]
    pub diff_id: Option<String>,
    /// When it became known.
    #[serde(skip_serializing)]
    pub published_at: Option<String>,
    /// It is on the list of exploited vulnerabilities.
    #[serde(skip_serializing)]
    pub known_exploited: bool,
    /// Probability of exploitation within 30 days.
    #[serde(skip_serializing)]
    pub epss_score: Option<f32>,
    /// Who declared it harmless, and why.
    #[serde(skip_serializing)]
    pub vex_status: Option<Statement>,
    /// What sort of package it is.
    #[serde(skip)]
    pub kind: String,
}

impl Finding {
    /// Other identifiers that the advisory declares: `DSA-5649-1`, `GHSA-rxwq-x6h5-x525`. One CVE is
    /// never another name of another CVE. Reports of older versions declare none: the references that
    /// they have are about other vulnerabilities too.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        let declared = self.declared.iter().take(MAX_ALIASES).map(String::as_str);
        declared.filter(|alias| is_identifier(alias) && is_alias(alias, &self.cve))
    }

    /// Whether it is known by this identifier.
    pub fn is_called(&self, id: &str) -> bool {
        let mut aliases = self.aliases();
        self.cve.eq_ignore_ascii_case(id) || aliases.any(|alias| alias.eq_ignore_ascii_case(id))
    }
}

/// Whether a text can be the identifier of an advisory: letters and digits, with hyphens between. The
/// name of a file is none.
fn is_identifier(text: &str) -> bool {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    text.len() <= MAX_ALIAS
        && text.contains('-')
        && text.chars().all(is_sound)
        && !text.ends_with(".html")
}

/// What somebody declared about a finding.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Statement {
    /// Where the statement was found.
    pub repository: String,
    /// Its verdict.
    pub status: String,
    /// Its justification.
    pub statement: String,
}

/// A report, whose results are read when they are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Report {
    results: Option<Box<RawValue>>,
    pub(crate) scanned_at: Option<String>,
    pub(crate) end_of_life: Option<String>,
    pub(crate) notes: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    vulnerabilities: Option<Vec<Finding>>,
}

impl Report {
    pub(crate) fn findings(self) -> Vec<Finding> {
        let Some(results) = self.results else {
            return Vec::new();
        };
        let parts: Vec<Part> = serde_json::from_str(results.get()).unwrap_or_default();
        let findings = parts.into_iter().flat_map(|part| {
            let kind = part.kind;
            let findings = part.vulnerabilities.into_iter().flatten();
            findings.map(move |finding| Finding {
                kind: kind.clone(),
                ..finding
            })
        });
        findings.collect()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
}

/// A VulnerabilityReport.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    metadata: Metadata,
    #[serde(default)]
    image_metadata: Value,
    #[serde(default)]
    pub(crate) report: Option<Report>,
}

impl Findings {
    /// What its image is called.
    pub fn image(&self) -> String {
        let image = image::reference(&json!({ "imageMetadata": self.image_metadata }));
        image.as_str().unwrap_or(&self.metadata.name).to_owned()
    }

    /// What its image is built for, or nothing.
    pub(crate) fn platform(&self) -> String {
        let platform = image::platform(&json!({ "imageMetadata": self.image_metadata }));
        platform.as_str().unwrap_or_default().to_owned()
    }

    /// What its image answers to.
    pub fn links(&self) -> Vec<String> {
        link::answered(&json!({
            "metadata": {"namespace": self.metadata.namespace},
            "imageMetadata": self.image_metadata,
        }))
    }

    /// Which image it is about.
    pub(crate) fn metadata(&self) -> &Value {
        &self.image_metadata
    }

    /// Where it is kept.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }

    /// What was found.
    pub fn findings(self) -> Vec<Finding> {
        self.report.map(Report::findings).unwrap_or_default()
    }

    /// As it is quoted in the report of a workload.
    pub(crate) fn quoted(
        namespace: String,
        name: String,
        image_metadata: Value,
        report: Option<Report>,
    ) -> Self {
        Findings {
            metadata: Metadata { namespace, name },
            image_metadata,
            report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As reports of older versions have it, with the references of another advisory.
    fn old() -> Finding {
        let finding = json!({
            "cve": "CVE-2024-5535", "packageName": "libcrypto3",
            "title": "Important: mysql:8.0 security update",
            "references": [
                "https://errata.example.org/9/ALSA-2024-9333.html",
                "https://access.example.org/errata/RHSA-2025:1673/",
                "https://example.org/CVE-2024-21193",
                "https://example.org/advisories/GHSA-rxwq-x6h5-x525/",
            ],
        });
        serde_json::from_value(finding).unwrap()
    }

    #[test]
    fn a_reference_is_no_alias() {
        let finding = old();
        assert_eq!(finding.aliases().collect::<Vec<_>>(), Vec::<&str>::new());
        for (id, expected) in [
            ("CVE-2024-5535", true),
            ("cve-2024-5535", true),
            ("CVE-2024-21193", false),
            ("ALSA-2024-9333.html", false),
            ("RHSA-2025:1673", false),
            ("GHSA-rxwq-x6h5-x525", false),
            ("", false),
        ] {
            assert_eq!(finding.is_called(id), expected, "{id}");
        }
    }

    #[test]
    fn a_finding_is_found_by_the_aliases_that_its_advisory_declares() {
        let declared = [
            "GHSA-rxwq-x6h5-x525",
            "dsa-5649-1",
            "CVE-2024-5535",
            "CVE-2024-21193",
            "cve-2024-11053",
            "ALSA-2024-9333.html",
            "ALASKERNEL-5.10-2024-1",
            "a page",
            "",
        ];
        let finding = Finding {
            declared: declared.map(str::to_owned).into(),
            ..old()
        };
        let aliases: Vec<&str> = finding.aliases().collect();
        let expected = [
            "GHSA-rxwq-x6h5-x525",
            "dsa-5649-1",
            "ALASKERNEL-5.10-2024-1",
        ];
        assert_eq!(aliases, expected);
        for (id, expected) in [
            ("ghsa-RXWQ-x6h5-x525", true),
            ("DSA-5649-1", true),
            ("DSA-5649", false),
            ("CVE-2024-21193", false),
            ("CVE-2024-11053", false),
        ] {
            assert_eq!(finding.is_called(id), expected, "{id}");
        }
    }
}
