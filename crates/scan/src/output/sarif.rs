//! SARIF 2.1.0, which code hosts show beside the code: a rule for each vulnerability, a result for
//! each package that has it. Suppressed findings are results that are suppressed.

use super::{Inspection, words};
use crate::report::ReportFinding;
use crate::vulnerability::Severity;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The document of some inspections.
pub fn sarif(inspections: &[Inspection]) -> Value {
    let mut rules: BTreeMap<&str, &ReportFinding> = BTreeMap::new();
    for finding in inspections.iter().flat_map(|one| one.report.findings()) {
        let rule = rules.entry(&finding.cve).or_insert(finding);
        // Packages may be hit differently hard; the rule speaks of the worst.
        if finding.rated() > rule.rated() {
            *rule = finding;
        }
    }
    let places: BTreeMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(place, id)| (*id, place))
        .collect();
    let results: Vec<Value> = inspections
        .iter()
        .flat_map(|one| one.report.findings().map(move |finding| (one, finding)))
        .map(|(inspection, finding)| result(inspection, finding, places[finding.cve.as_str()]))
        .collect();
    let rules: Vec<Value> = rules.values().map(|finding| rule(finding)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "muster",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications(inspections),
            }],
            "columnKind": "unicodeCodePoints",
        }],
    })
}

/// What the results do not show: packages that were not matched, targets without packages, and
/// findings that were left out.
fn notifications(inspections: &[Inspection]) -> Vec<Value> {
    let mut all = Vec::new();
    for one in inspections {
        let mut notify = |id: &str, level: &str, text: String, properties: Value| {
            let place = json!({"artifactLocation": {"uri": uri(image(&one.name))}});
            all.push(json!({
                "descriptor": {"id": id},
                "level": level,
                "message": {"text": format!("{}: {text}", one.name)},
                "locations": [{"physicalLocation": place}],
                "properties": properties,
            }));
        };
        for unmatched in one.report.unmatched() {
            let text = words::unmatched(unmatched);
            notify("not-matched", "warning", text, json!(unmatched));
        }
        if one.packages == 0 {
            notify(
                "no-packages",
                "warning",
                "no packages found".into(),
                json!({}),
            );
        }
        if one.left_out.total() > 0 {
            let text = format!("{} findings are not shown", one.left_out.total());
            notify("left-out", "note", text, json!(one.left_out));
        }
    }
    all
}

fn rule(finding: &ReportFinding) -> Value {
    let or_id = |text: &str| match text {
        "" => finding.cve.clone(),
        text => text.to_owned(),
    };
    let mut rule = json!({
        "id": finding.cve,
        "shortDescription": {"text": or_id(&finding.title)},
        "fullDescription": {"text": or_id(&finding.description)},
        "defaultConfiguration": {"level": level(finding)},
        "properties": {
            "security-severity": score(finding),
            "tags": ["security", "vulnerability", finding.severity],
        },
    });
    if let Some(page) = finding.references.first() {
        rule["helpUri"] = json!(page);
    }
    rule
}

fn result(inspection: &Inspection, finding: &ReportFinding, rule: usize) -> Value {
    let fixed = match finding.fixed_versions.as_slice() {
        [] => "no version is free of it".to_owned(),
        versions => format!("fixed in {}", versions.join(", ")),
    };
    let text = format!(
        "{} {} in {} has {} ({}), {fixed}",
        finding.package_name,
        finding.installed_version,
        inspection.name,
        finding.cve,
        finding.severity.to_lowercase(),
    );
    let place = match finding.package_path.as_str() {
        "" => image(&inspection.name),
        path => path,
    };
    let mut result = json!({
        "ruleId": finding.cve,
        "ruleIndex": rule,
        "level": level(finding),
        "message": {"text": text},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(place)},
                "region": {"startLine": 1},
            },
            "message": {"text": inspection.name},
        }],
        "partialFingerprints": {"package/v1": fingerprint(inspection, finding)},
    });
    if finding.suppressed {
        let why = finding.vex_status.as_ref();
        let why = why.map_or("", |vex| vex.statement.as_str());
        result["suppressions"] = json!([{"kind": "external", "justification": why}]);
    }
    result
}

fn level(finding: &ReportFinding) -> &'static str {
    match finding.rated() {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Unknown => "note",
    }
}

/// How bad it is as a number, as code hosts sort by it: what somebody has rated, so long as that
/// agrees with the severity that stands in the report.
fn score(finding: &ReportFinding) -> String {
    let (least, most, else_) = match finding.rated() {
        Severity::Critical => (9.0, 10.0, "9.5"),
        Severity::High => (7.0, 8.9, "8.0"),
        Severity::Medium => (4.0, 6.9, "5.5"),
        Severity::Low => (0.1, 3.9, "2.0"),
        Severity::Unknown => (0.0, 0.0, "0.0"),
    };
    let scores = finding
        .cvss
        .values()
        .flat_map(|rating| [&rating.v4score, &rating.v3score, &rating.v2score]);
    scores
        .filter_map(|text| text.parse::<f64>().ok())
        .find(|score| (least..=most).contains(score))
        .map_or(else_.to_owned(), |score| format!("{score:.1}"))
}

/// The image without tag and digest, which are no part of a place.
fn image(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.trim_start_matches('/').bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'/'
            | b'@'
            | b'+' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The same finding in the next version of the same image is the same alert.
fn fingerprint(inspection: &Inspection, finding: &ReportFinding) -> String {
    let parts = [
        image(&inspection.name),
        &finding.cve,
        &finding.package_name,
        &finding.package_path,
    ];
    let hash = Sha256::digest(parts.join("\0"));
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Reason, Unmatched};
    use crate::report::{Rating, Report, ReportResult, VexStatus};

    fn inspection() -> Inspection {
        let finding = |package: &str, cve: &str, severity: &str| ReportFinding {
            cve: cve.into(),
            title: "a flaw".into(),
            package_name: package.into(),
            installed_version: "1.0".into(),
            fixed_versions: vec!["1.1".into()],
            severity: severity.into(),
            references: vec!["https://example.org/a".into()],
            ..ReportFinding::default()
        };
        let mut rated = finding("a", "CVE-1", "HIGH");
        rated.package_path = "app/a b/package.json".into();
        let rating = Rating {
            v3score: "7.5".into(),
            v2score: "9.9".into(),
            ..Rating::default()
        };
        rated.cvss.insert("nvd".into(), rating);
        let mut harmless = finding("c", "CVE-2", "MEDIUM");
        harmless.suppressed = true;
        harmless.vex_status = Some(VexStatus {
            statement: "code not reachable".into(),
            ..VexStatus::default()
        });
        Inspection {
            name: "localhost:5000/app:1".into(),
            packages: 3,
            report: Report {
                results: vec![ReportResult {
                    vulnerabilities: vec![finding("b", "CVE-1", "LOW"), rated, harmless],
                    ..ReportResult::default()
                }],
                ..Report::default()
            },
            ..Inspection::default()
        }
    }

    #[test]
    fn what_the_results_do_not_show_is_a_notification() {
        let mut shown = inspection();
        shown.report.unmatched = Some(vec![Unmatched {
            reason: Reason::NoData,
            kind: "deb".into(),
            count: 14,
            matchable: true,
            message: "the vulnerability data has nothing for debian 12.1".into(),
            packages: Vec::new(),
        }]);
        shown.left_out.by_severity = 68;
        let empty = Inspection {
            name: "empty".into(),
            ..Inspection::default()
        };
        let document = sarif(&[shown, empty]);
        let invocation = &document["runs"][0]["invocations"][0];
        let notifications = invocation["toolExecutionNotifications"].as_array().unwrap();
        let told: Vec<_> = notifications
            .iter()
            .map(|one| {
                (
                    one["descriptor"]["id"].as_str().unwrap(),
                    one["message"]["text"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (
                    "not-matched",
                    "localhost:5000/app:1: 14 deb packages were not matched: the vulnerability data \
                     has nothing for debian 12.1; run `muster db update`"
                ),
                (
                    "left-out",
                    "localhost:5000/app:1: 68 findings are not shown"
                ),
                ("no-packages", "empty: no packages found"),
            ]
        );
        assert_eq!(notifications[0]["properties"]["reason"], "NoData");
        assert_eq!(notifications[0]["properties"]["count"], 14);
    }

    #[test]
    fn a_vulnerability_is_a_rule_and_a_package_that_has_it_a_result() {
        let document = sarif(&[inspection()]);
        let run = &document["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!(rules[0]["id"], "CVE-1");
        assert_eq!(rules[0]["properties"]["security-severity"], "7.5");
        assert_eq!(rules[0]["defaultConfiguration"]["level"], "error");
        assert_eq!(rules[1]["properties"]["security-severity"], "5.5");
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        for result in results {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(result["ruleId"], rules[index]["id"]);
        }
        let uri = |place: usize| {
            let place = &results[place]["locations"][0]["physicalLocation"];
            place["artifactLocation"]["uri"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(uri(0), "localhost%3A5000/app");
        assert_eq!(uri(1), "app/a%20b/package.json");
        assert_eq!(results[0]["level"], "note");
        assert_eq!(
            results[0]["message"]["text"],
            "b 1.0 in localhost:5000/app:1 has CVE-1 (low), fixed in 1.1"
        );
        assert_eq!(
            results[2]["suppressions"][0]["justification"],
            "code not reachable"
        );
        assert!(results[0].get("suppressions").is_none());
    }

    #[test]
    fn alerts_survive_a_new_tag() {
        let (first, mut second) = (inspection(), inspection());
        second.name = "localhost:5000/app:2".into();
        let prints = |one: &Inspection| -> Vec<String> {
            one.report
                .findings()
                .map(|finding| fingerprint(one, finding))
                .collect()
        };
        assert_eq!(prints(&first), prints(&second));
        let distinct: std::collections::BTreeSet<_> = prints(&first).into_iter().collect();
        assert_eq!(distinct.len(), 3);
    }
}
