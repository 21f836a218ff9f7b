//! VEX: statements that a vulnerability does or does not matter in a product. They are applied when
//! a report is made, never while scanning, so that a new statement needs no new scan; what they
//! suppress stays in the report, with the statement beside it.

mod attestation;
mod csaf;
mod cyclonedx;
pub mod hub;
mod openvex;
mod product;

pub use openvex::{Document, VexError};

use crate::purl::Purl;
use crate::report::{Report, VexState, VexStatus};
use openvex::{Statement, Verdict};
pub(crate) use product::covers;
use std::collections::HashMap;

/// Every statement that is known, by vulnerability.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    by_vulnerability: HashMap<String, Vec<Known>>,
    revision: String,
}

#[derive(Clone, Debug)]
struct Known {
    statement: Statement,
    repository: String,
    /// When it was made, then the order in which it came: the last word counts.
    rank: (String, usize),
}

impl Statements {
    /// No statements yet; `revision` identifies the state of all sources of them.
    pub fn new(revision: impl Into<String>) -> Self {
        Statements {
            by_vulnerability: HashMap::new(),
            revision: revision.into(),
        }
    }

    /// Adds the statements of a document that was found in a repository.
    pub fn add(&mut self, document: &Document, repository: &str) {
        for (place, statement) in document.statements.iter().enumerate() {
            for name in &statement.vulnerabilities {
                let known = Known {
                    statement: statement.clone(),
                    repository: repository.into(),
                    rank: (statement.timestamp.clone(), place),
                };
                let list = self.by_vulnerability.entry(name.clone()).or_default();
                list.push(known);
            }
        }
    }

    /// Marks what the statements declare harmless, and counts anew. `image` is the package URL of
    /// the image itself, for statements about a package inside of a certain image.
    pub fn apply(&self, report: &mut Report, image: Option<&Purl>) {
        for finding in report
            .results
            .iter_mut()
            .flat_map(|one| &mut one.vulnerabilities)
        {
            (finding.suppressed, finding.vex_status) = (false, None);
            let Some(purl) = Purl::parse(&finding.purl) else {
                continue;
            };
            let candidates = self.by_vulnerability.get(&finding.cve);
            let last = candidates
                .into_iter()
                .flatten()
                .filter(|known| known.statement.speaks_of(&purl, image))
                .max_by(|left, right| left.rank.cmp(&right.rank));
            let Some(Known {
                statement,
                repository,
                ..
            }) = last
            else {
                continue;
            };
            if matches!(statement.verdict, Verdict::NotAffected | Verdict::Fixed) {
                finding.suppressed = true;
                finding.vex_status = Some(VexStatus {
                    repository: repository.clone(),
                    status: statement.verdict.name().into(),
                    statement: statement.justification.clone(),
                });
            }
        }
        report.vex = Some(VexState {
            revision: self.revision.clone(),
        });
        report.count();
    }
}

impl Statement {
    /// Whether it is about that package: as a product of its own, or as a part of this image.
    fn speaks_of(&self, package: &Purl, image: Option<&Purl>) -> bool {
        self.products.iter().any(|product| {
            if product.parts.is_empty() {
                return covers(&product.purl, package)
                    || image.is_some_and(|image| covers(&product.purl, image));
            }
            let is_here = image.is_some_and(|image| covers(&product.purl, image))
                || covers(&product.purl, package);
            is_here && product.parts.iter().any(|part| covers(part, package))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportFinding, ReportResult};

    fn report(findings: &[(&str, &str)]) -> Report {
        let finding = |(cve, purl): &(&str, &str)| ReportFinding {
            cve: (*cve).into(),
            purl: (*purl).into(),
            severity: "HIGH".into(),
            ..ReportFinding::default()
        };
        Report {
            results: vec![ReportResult {
                vulnerabilities: findings.iter().map(finding).collect(),
                ..ReportResult::default()
            }],
            ..Report::default()
        }
    }

    fn statements(text: serde_json::Value) -> Statements {
        let mut statements = Statements::new("r1");
        let document = Document::parse(text.to_string().as_bytes()).unwrap();
        statements.add(&document, "hub");
        statements
    }

    fn document(statements: serde_json::Value) -> serde_json::Value {
        serde_json::json!({
            "@context": "https://openvex.dev/ns/v0.2.0", "@id": "x", "author": "a",
            "timestamp": "2024-01-01T00:00:00Z", "version": 1, "statements": statements,
        })
    }

    const MUSL: &str = "pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.3";

    #[test]
    fn a_suppressed_finding_stays_and_is_counted_apart() {
        let statements = statements(document(serde_json::json!([{
            "vulnerability": {"name": "CVE-1"},
            "products": [{"@id": "pkg:apk/alpine/musl"}],
            "status": "not_affected", "justification": "vulnerable_code_not_present",
        }])));
        let mut report = report(&[
            ("CVE-1", MUSL),
            ("CVE-2", MUSL),
            ("CVE-1", "pkg:npm/musl@1"),
        ]);
        statements.apply(&mut report, None);
        assert_eq!((report.summary.high, report.summary.suppressed), (2, 1));
        let finding = &report.results[0].vulnerabilities[0];
        assert!(finding.suppressed);
        let status = finding.vex_status.as_ref().unwrap();
        assert_eq!(
            (
                status.repository.as_str(),
                status.status.as_str(),
                status.statement.as_str()
            ),
            ("hub", "not_affected", "vulnerable_code_not_present")
        );
        assert_eq!(report.vex.as_ref().unwrap().revision, "r1");
        // Once the statement is gone, so is the mark.
        Statements::new("r2").apply(&mut report, None);
        assert_eq!((report.summary.high, report.summary.suppressed), (3, 0));
    }

    #[test]
    fn the_last_word_counts() {
        let statements = statements(document(serde_json::json!([
            {"vulnerability": "CVE-1", "products": [MUSL], "status": "affected",
             "timestamp": "2024-03-01T00:00:00Z"},
            {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": MUSL}], "status": "not_affected"},
            {"vulnerability": {"name": "CVE-2", "aliases": ["GHSA-2"]}, "products": [{"@id": MUSL}], "status": "under_investigation"},
            {"vulnerability": {"name": "CVE-2", "aliases": ["GHSA-2"]}, "products": [{"@id": MUSL}], "status": "fixed"},
        ])));
        let mut report = report(&[("CVE-1", MUSL), ("CVE-2", MUSL), ("GHSA-2", MUSL)]);
        statements.apply(&mut report, None);
        let suppressed: Vec<bool> = report.results[0]
            .vulnerabilities
            .iter()
            .map(|one| one.suppressed)
            .collect();
        assert_eq!(suppressed, [false, true, true]);
    }

    #[test]
    fn other_formats_say_the_same() {
        let csaf = serde_json::json!({
            "document": {"category": "csaf_vex", "tracking": {"current_release_date": "2024-01-01T00:00:00Z"}},
            "product_tree": {
                "branches": [{"branches": [
                    {"product": {"product_id": "musl", "product_identification_helper": {"purl": "pkg:apk/alpine/musl"}}},
                    {"product": {"product_id": "app", "product_identification_helper": {"purl": "pkg:oci/app"}}},
                    {"product": {"product_id": "unnamed"}},
                ]}],
                "relationships": [
                    {"product_reference": "musl", "relates_to_product_reference": "app", "full_product_name": {"product_id": "musl in app"}},
                    {"product_reference": "musl", "relates_to_product_reference": "unnamed", "full_product_name": {"product_id": "musl in unnamed"}},
                ],
            },
            "vulnerabilities": [
                {"cve": "CVE-1", "product_status": {"known_not_affected": ["musl"]},
                 "flags": [{"label": "component_not_present", "product_ids": ["other"]}, {"label": "vulnerable_code_not_present", "product_ids": ["musl"]}]},
                {"cve": "CVE-2", "product_status": {"known_not_affected": ["musl in app"]}},
                {"cve": "CVE-3", "product_status": {"known_not_affected": ["musl in unnamed", "unnamed"]}},
                {"cve": "CVE-4", "product_status": {"known_affected": ["musl"]}},
            ],
        });
        let cyclonedx = serde_json::json!({
            "bomFormat": "CycloneDX", "specVersion": "1.6", "metadata": {"timestamp": "2024-01-01T00:00:00Z"},
            "components": [{"bom-ref": "a", "purl": "pkg:apk/alpine/musl"}],
            "vulnerabilities": [
                {"id": "CVE-1", "analysis": {"state": "not_affected", "justification": "vulnerable_code_not_present"}, "affects": [{"ref": "a"}]},
                {"id": "CVE-2", "analysis": {"state": "resolved"}, "affects": [{"ref": "urn:cdx:1/1#pkg:oci/app"}]},
                {"id": "CVE-3", "analysis": {"state": "false_positive"}, "affects": [{"ref": "b"}]},
                {"id": "CVE-4", "analysis": {"state": "exploitable"}, "affects": [{"ref": MUSL}]},
            ],
        });
        let app = Purl::parse("pkg:oci/app@sha256:abc");
        for text in [csaf, cyclonedx] {
            let statements = statements(text);
            let mut report = report(&[
                ("CVE-1", MUSL),
                ("CVE-2", MUSL),
                ("CVE-3", MUSL),
                ("CVE-4", MUSL),
            ]);
            statements.apply(&mut report, app.as_ref());
            let found = &report.results[0].vulnerabilities;
            let suppressed: Vec<bool> = found.iter().map(|one| one.suppressed).collect();
            assert_eq!(suppressed, [true, true, false, false]);
            let status = found[0].vex_status.as_ref().unwrap();
            assert_eq!(status.statement, "vulnerable_code_not_present");
            // The second holds in its image alone.
            statements.apply(&mut report, None);
            assert_eq!(report.summary.suppressed, 1);
        }
        assert!(Document::parse(b"{\"bomFormat\": \"SPDX\"}").is_err());
    }

    #[test]
    fn a_statement_about_a_part_holds_in_its_product_alone() {
        let statements = statements(document(serde_json::json!([{
            "vulnerability": {"name": "CVE-1"},
            "products": [{"@id": "pkg:oci/app?repository_url=ghcr.io/org/app",
                          "subcomponents": [{"@id": "pkg:apk/alpine/musl"}]}],
            "status": "not_affected",
        }])));
        let image = |url| Purl::parse(url);
        for (image, suppressed) in [
            (
                image("pkg:oci/app@sha256:abc?arch=amd64&repository_url=ghcr.io/org/app"),
                1,
            ),
            (
                image("pkg:oci/app@sha256:abc?repository_url=ghcr.io/other/app"),
                0,
            ),
            (None, 0),
        ] {
            let mut report = report(&[("CVE-1", MUSL)]);
            statements.apply(&mut report, image.as_ref());
            assert_eq!(report.summary.suppressed, suppressed);
        }
    }
}
