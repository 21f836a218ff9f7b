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
