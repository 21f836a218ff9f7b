//! The report of a scan, in the shape that the VulnerabilityReport kind keeps under `report`:
//! counts, then findings grouped by where they are.

use crate::digest::Digest;
use crate::layer::Incomplete;
use crate::matching::{Finding, Findings, Unmatched};
use crate::package::Detector;
use crate::purl::Purl;
use crate::sbom::Bill;
use crate::vulnerability::exploitation::ExploitationData;
use crate::vulnerability::{Cvss, Metadata, Severity};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Findings by severity.
    pub summary: Summary,
    /// Findings, grouped by where they are.
    pub results: Vec<ReportResult>,
    /// When the bill was matched, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanned_at: Option<String>,
    /// What did the matching.
    #[serde(default)]
    pub scanner: Scanner,
    /// The data that was matched with.
    #[serde(default)]
    pub database: DatabaseState,
    /// The statements that suppressed findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vex: Option<VexState>,
    /// Files that should have been understood and were not: there may be more than was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<Incomplete>,
    /// The packages that were not matched, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The packages that were not matched, by reason and type; empty if all were. Reports of older
    /// versions do not have it, and then it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<Vec<Unmatched>>,
    /// The last day on which the release of the distribution got fixes, if that is over: what was
    /// not found may be there all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_of_life: Option<String>,
}

/// Counts by severity. A suppressed finding counts as suppressed and nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Critical findings.
    pub critical: u64,
    /// High findings.
    pub high: u64,
    /// Medium findings.
    pub medium: u64,
    /// Low findings.
    pub low: u64,
    /// Findings nobody has rated.
    pub unknown: u64,
    /// Findings that a VEX statement declares harmless here.
    pub suppressed: u64,
}

/// What did the matching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scanner {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The data that was matched with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseState {
    /// Identifies the data.
    pub revision: String,
    /// When its makers last changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// The statements that suppressed findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VexState {
    /// Identifies the state of all statements.
    pub revision: String,
}

/// The findings of one part of the image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportResult {
    /// The part: a distribution, a file or a language.
    pub target: String,
    /// What sort of part it is: `os-pkgs` or `lang-pkgs`.
    pub class: String,
    /// The ecosystem of its packages.
    #[serde(rename = "type")]
    pub kind: String,
    /// The findings.
    pub vulnerabilities: Vec<ReportFinding>,
}

/// One vulnerability of one package.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportFinding {
    /// Identifier of the vulnerability.
    pub cve: String,
    /// Its other identifiers, as far as the advisory declares them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// In a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// In full.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Name of the package.
    pub package_name: String,
    /// File in the image that declares it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package_path: String,
    /// Its package URL.
    pub purl: String,
    /// The version that is installed.
    pub installed_version: String,
    /// Versions that are free of it.
    pub fixed_versions: Vec<String>,
    /// What the vendor does about it.
    pub status: String,
    /// The layer that brought the package.
    #[serde(rename = "diffID", skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
    /// How bad it is.
    pub severity: String,
    /// Who says so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub severity_source: String,
    /// Where to read more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// Ratings by who gave them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cvss: BTreeMap<String, Rating>,
    /// Weaknesses behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cwes: Vec<String>,
    /// When it became known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    /// When its description last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<String>,
    /// It is on the list of exploited vulnerabilities.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub known_exploited: bool,
    /// Probability of exploitation within 30 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epss_score: Option<f32>,
    /// Share of vulnerabilities that score no higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epss_percentile: Option<f32>,
    /// A VEX statement says it does no harm here.
    pub suppressed: bool,
    /// That statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vex_status: Option<VexStatus>,
}

/// A CVSS rating; scores are text there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rating {
    /// CVSS 2 vector.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v2vector: String,
    /// CVSS 2 base score.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v2score: String,
    /// CVSS 3 vector.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v3vector: String,
    /// CVSS 3 base score.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v3score: String,
    /// CVSS 4 vector.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v4vector: String,
    /// CVSS 4 base score.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub v4score: String,
}

/// The statement that suppresses a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VexStatus {
    /// Where the statement was found.
    pub repository: String,
    /// Its verdict: `not_affected` or `fixed`.
    pub status: String,
    /// Its justification.
    pub statement: String,
}

impl Report {
    /// The report of what was found with a bill. The caller says what time it is.
    pub fn new(bill: &Bill, findings: &Findings, metadata: &Metadata, now: Option<&str>) -> Self {
        let mut groups: BTreeMap<(bool, String, String), Vec<ReportFinding>> = BTreeMap::new();
        for finding in &findings.findings {
            let Some(component) = bill.components.get(finding.component) else {
                continue;
            };
            let is_language = !component.detector.is_os();
            let (target, kind) = place(bill, component.detector, &component.path);
            let group = groups.entry((is_language, target, kind)).or_default();
            group.push(line(bill, finding));
        }
        let results: Vec<ReportResult> = groups
            .into_iter()
            .map(
                |((is_language, target, kind), vulnerabilities)| ReportResult {
                    target,
                    class: if is_language { "lang-pkgs" } else { "os-pkgs" }.into(),
                    kind,
                    vulnerabilities,
                },
            )
            .collect();
        let mut report = Report {
            results,
            incomplete: bill.incomplete.clone(),
            notes: findings.unmatched.iter().map(Unmatched::sentence).collect(),
            unmatched: Some(findings.unmatched.clone()),
            end_of_life: findings
                .end_of_life
                .as_ref()
                .map(|end| end.date.to_string()),
            scanned_at: now.map(Into::into),
            scanner: Scanner {
                name: "muster".into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
            database: DatabaseState {
                revision: metadata.revision.clone(),
                updated_at: metadata.updated_at.clone(),
            },
            ..Report::default()
        };
        report.count();
        report.rank();
        report
    }

    /// Puts what matters most first: what is exploited, then what is worst, then what is likely to
    /// be exploited. Suppressed findings come last.
    pub fn rank(&mut self) {
        for result in &mut self.results {
            result.vulnerabilities.sort_by(|left, right| {
                left.urgency()
                    .cmp(&right.urgency())
                    .then_with(|| left.likelihood().total_cmp(&right.likelihood()).reverse())
                    .then_with(|| left.package_name.cmp(&right.package_name))
                    .then_with(|| left.package_path.cmp(&right.package_path))
                    .then_with(|| left.cve.cmp(&right.cve))
            });
        }
    }

    /// Adds how likely findings are exploited, and puts what matters most first anew.
    pub fn enrich(&mut self, known: &ExploitationData) {
        let findings = self
            .results
            .iter_mut()
            .flat_map(|one| &mut one.vulnerabilities);
        for finding in findings {
            let known = known.of(&finding.cve).unwrap_or_default();
            finding.known_exploited = known.known_exploited.is_some();
            finding.epss_score = known.epss;
            finding.epss_percentile = known.percentile;
        }
        self.rank();
    }

    /// The findings, wherever they are.
    pub fn findings(&self) -> impl Iterator<Item = &ReportFinding> {
        self.results.iter().flat_map(|one| &one.vulnerabilities)
    }

    /// The packages that were not matched, by reason and type.
    pub fn unmatched(&self) -> &[Unmatched] {
        self.unmatched.as_deref().unwrap_or_default()
    }

    /// The worst of what is not suppressed.
    pub fn worst(&self) -> Option<Severity> {
        let open = self.findings().filter(|finding| !finding.suppressed);
        open.map(ReportFinding::rated).max()
    }

    /// Counts the findings anew, as must be done after some were suppressed.
    pub fn count(&mut self) {
        let mut summary = Summary::default();
        for finding in self.findings() {
            let count = match finding.rated() {
                _ if finding.suppressed => &mut summary.suppressed,
                Severity::Critical => &mut summary.critical,
                Severity::High => &mut summary.high,
                Severity::Medium => &mut summary.medium,
                Severity::Low => &mut summary.low,
                Severity::Unknown => &mut summary.unknown,
            };
            *count += 1;
        }
        self.summary = summary;
    }
}

impl ReportFinding {
    /// How bad it is.
    pub fn rated(&self) -> Severity {
        Severity::named(&self.severity).unwrap_or_default()
    }

    fn urgency(&self) -> (bool, Reverse<bool>, Reverse<Severity>) {
        let exploited = Reverse(self.known_exploited);
        (self.suppressed, exploited, Reverse(self.rated()))
    }

    fn likelihood(&self) -> f32 {
        self.epss_score.unwrap_or_default()
    }
}

/// Where a package is found: the distribution, the language for what is installed file by file,
/// and else the file.
fn place(bill: &Bill, detector: Detector, path: &str) -> (String, String) {
    let kind = detector.name().to_owned();
    let target = match detector {
        Detector::Dpkg | Detector::Apk | Detector::Rpm => match &bill.os {
            Some(os) => {
                let target = format!("{} ({os})", bill.subject.name);
                return (target, os.family.name().to_owned());
            }
            None => bill.subject.name.clone(),
        },
        Detector::NodePackage => "Node.js".into(),
        Detector::PythonPackage => "Python".into(),
        Detector::Jar => "Java".into(),
        Detector::Gemspec => "Ruby".into(),
        _ => path.to_owned(),
    };
    (target, kind)
}

fn line(bill: &Bill, finding: &Finding) -> ReportFinding {
    let component = &bill.components[finding.component];
    let package = &component.package;
    let about = &finding.vulnerability;
    let ecosystem = component.detector.ecosystem();
    ReportFinding {
        cve: finding.id.clone(),
        aliases: finding.aliases.clone(),
        title: about.title.clone(),
        description: about.description.clone(),
        package_name: package.name.clone(),
        package_path: component.path.clone(),
        purl: Purl::of(ecosystem, package, bill.os.as_ref()).to_string(),
        installed_version: package.version.clone(),
        fixed_versions: finding.fixed_versions.clone(),
        status: finding.status.name().into(),
        diff_id: component.layer.clone(),
        severity: finding.severity.name().into(),
        severity_source: finding.severity_source.clone(),
        references: about.references.clone(),
        cvss: about
            .cvss
            .iter()
            .map(|(source, one)| (source.clone(), rating(one)))
            .collect(),
        cwes: about.cwes.clone(),
        published_at: about.published.clone(),
        modified_at: about.modified.clone(),
        known_exploited: false,
        epss_score: None,
        epss_percentile: None,
        suppressed: false,
        vex_status: None,
    }
}

fn rating(cvss: &Cvss) -> Rating {
    let score = |score: Option<f64>| {
        let given = score.filter(|score| *score > 0.0);
        given.map_or(String::new(), |score| format!("{score:.1}"))
    };
    Rating {
        v2vector: cvss.v2_vector.clone(),
        v2score: score(cvss.v2_score),
        v3vector: cvss.v3_vector.clone(),
        v3score: score(cvss.v3_score),
        v4vector: cvss.v4_vector.clone(),
        v4score: score(cvss.v4_score),
    }
}
