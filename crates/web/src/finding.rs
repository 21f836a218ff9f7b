//! Findings as reports tell them, as far as anybody reads them here. Nobody has vouched for the shape of
//! results: those of another one are none.

use muster_api::{image, link};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A finding.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// Identifier of the vulnerability.
    pub cve: String,
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
    /// What else it is known as, which is where addresses to read more at end: `DSA-5649-1`,
    /// `GHSA-rxwq-x6h5-x525`.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        let ends = self.references.iter().filter_map(|reference| {
            let reference = reference.trim_end_matches('/');
            reference.rsplit('/').next()
        });
        ends.filter(|end| is_identifier(end) && !end.eq_ignore_ascii_case(&self.cve))
    }

    /// Whether it is known by this identifier.
    pub fn is_called(&self, id: &str) -> bool {
        let mut aliases = self.aliases();
        self.cve.eq_ignore_ascii_case(id) || aliases.any(|alias| alias.eq_ignore_ascii_case(id))
    }
}

/// Whether somebody could call an advisory so: words and numbers with hyphens between, a word first.
fn is_identifier(text: &str) -> bool {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let source = text.split('-').next().unwrap_or_default();
    text.len() <= 40
        && text.contains('-')
        && text.chars().all(is_sound)
        && (2..=8).contains(&source.len())
        && source.chars().all(|c| c.is_ascii_alphabetic())
        && text.chars().any(|c| c.is_ascii_digit())
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

    #[test]
    fn a_finding_answers_to_what_it_is_also_known_as() {
        let references = [
            "https://example.org/advisories/GHSA-rxwq-x6h5-x525/",
            "https://example.org/security/dsa-5649-1",
            "https://example.org/a-page-about-it",
            "https://example.org/CVE-2024-3094",
            "https://example.org/",
        ];
        let finding = Finding {
            cve: "CVE-2024-3094".into(),
            references: references.map(str::to_owned).into(),
            ..Finding::default()
        };
        let aliases: Vec<&str> = finding.aliases().collect();
        assert_eq!(aliases, ["GHSA-rxwq-x6h5-x525", "dsa-5649-1"]);
        for (id, expected) in [
            ("cve-2024-3094", true),
            ("ghsa-RXWQ-x6h5-x525", true),
            ("DSA-5649-1", true),
            ("DSA-5649", false),
            ("", false),
        ] {
            assert_eq!(finding.is_called(id), expected, "{id}");
        }
    }
}
