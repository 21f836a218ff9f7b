//! SARIF 2.1.0, which code hosts show beside the code: a rule for each policy and each configuration
//! check, a result for each object that one refuses or could not judge. What is exempt is suppressed.

use super::super::configuration::{CheckResult, Said, severity};
use super::super::judge::{Audited, Known};
use super::Found;
use muster_checks::check::{Description, Exemption};
use muster_kind::Digest;
use muster_policy::{Outcome, Verdict};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Component, Path};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// What is said of an object by a rule.
struct Claim<'a> {
    rule: String,
    index: usize,
    severity: Option<&'a str>,
    outcome: &'static str,
    why: String,
    /// Where in the object, so that claims are told apart.
    place: Option<&'a str>,
    exemption: Option<&'a Exemption>,
}

pub(super) fn sarif(found: Found<'_>) -> Value {
    let mut rules: Vec<Value> = found.bench.policies.iter().map(of_policy).collect();
    let checks = check_rules(found, &mut rules);
    let here = std::env::current_dir().ok();
    let mut results = Vec::new();
    for audited in found.audited {
        let policies = audited.refusals();
        let policies =
            policies.map(|(place, verdict)| judged(&found.bench.policies[place], place, verdict));
        let findings = audited.findings().iter().map(|said| checked(said, &checks));
        let claims = policies.chain(findings);
        results.extend(claims.map(|claim| result(audited, &claim, here.as_deref())));
    }
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
            "columnKind": "unicodeCodePoints",
        }],
    })
}

fn of_policy(known: &Known) -> Value {
    let policy = known.policy();
    let title = policy.title().unwrap_or(&policy.name);
    let mut rule = json!({
        "id": policy.unique_name(),
        "name": policy.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": known.description.as_deref().unwrap_or(title)},
    });
    rate(&mut rule, "policy", policy.category(), policy.severity());
    rule
}

/// Adds the rules of all checks, each identifier once, and says where they are. What a check says of one
/// object may have an identifier of its own.
fn check_rules<'a>(found: Found<'a>, rules: &mut Vec<Value>) -> HashMap<&'a str, usize> {
    let said = found.audited.iter().flat_map(Audited::findings);
    let all = found.bench.configuration.descriptions();
    let mut places = HashMap::new();
    for check in all.chain(said.map(|said| &*said.check)) {
        places.entry(check.id.as_str()).or_insert_with(|| {
            rules.push(of_check(check));
            rules.len() - 1
        });
    }
    places
}

fn of_check(check: &Description) -> Value {
    let or_title = |text: &str| match text {
        "" => check.title.clone(),
        text => text.to_owned(),
    };
    let mut rule = json!({
        "id": check.id,
        "name": check.title,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": or_title(&check.description)},
        "help": {"text": or_title(&check.remediation)},
    });
    rate(&mut rule, "check", Some(&check.category), severity(check));
    rule
}

/// Says of a rule what it belongs to and how bad it is to break it.
fn rate(rule: &mut Value, sort: &str, category: Option<&str>, severity: Option<&str>) {
    let tags = ["security", sort]
        .into_iter()
        .chain(category)
        .chain(severity);
    rule["defaultConfiguration"] = json!({"level": level(severity)});
    rule["properties"] = json!({"tags": tags.collect::<Vec<_>>()});
    if let Some(score) = score(severity) {
        rule["properties"]["security-severity"] = score.into();
    }
}

fn judged<'a>(known: &'a Known, index: usize, verdict: &'a Verdict) -> Claim<'a> {
    let policy = known.policy();
    Claim {
        rule: policy.unique_name(),
        index,
        severity: policy.severity(),
        outcome: verdict.outcome.as_str(),
        why: match (verdict.outcome, verdict.message.as_str()) {
            (Outcome::Error, why) => format!("could not be judged: {why}"),
            (_, "") => "is refused".to_owned(),
            (_, why) => why.to_owned(),
        },
        place: None,
        exemption: None,
    }
}

fn checked<'a>(said: &'a Said, places: &HashMap<&str, usize>) -> Claim<'a> {
    let (outcome, exemption) = match &said.result {
        CheckResult::Fail => ("fail", None),
        CheckResult::Exempt(exemption) => ("exempt", Some(exemption)),
        CheckResult::Error => ("error", None),
    };
    Claim {
        rule: said.check.id.clone(),
        // Every check that says something has a rule.
        index: places
            .get(said.check.id.as_str())
            .copied()
            .unwrap_or_default(),
        severity: said.severity(),
        outcome,
        why: said.why(),
        place: said.place.as_ref().map(|place| place.value.as_str()),
        exemption,
    }
}

fn result(audited: &Audited, claim: &Claim, here: Option<&Path>) -> Value {
    let subject = &audited.subject;
    let kind = subject.kind.to_lowercase();
    let within = subject.namespace.as_ref();
    let within = within.map_or(String::new(), |namespace| format!("{namespace}/"));
    let object = format!("{within}{kind}/{}", subject.name);
    let (file, line) = match &audited.origin {
        Some(origin) if &*origin.file != "-" => (relative(&origin.file, here), origin.line),
        _ => (uri(&object), 1),
    };
    let identity = [claim.rule.as_str(), &subject.api_version, &object];
    let identity: Vec<&str> = identity.into_iter().chain(claim.place).collect();
    let Digest(print) = Digest::of(identity.join("\0").as_bytes());
    let print: String = print
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut result = json!({
        "ruleId": claim.rule,
        "ruleIndex": claim.index,
        "level": level(claim.severity),
        "message": {"text": format!("{object}: {}", claim.why)},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": file},
                "region": {"startLine": line},
            },
            "logicalLocations": [{
                "name": subject.name,
                "fullyQualifiedName": object,
                "kind": "resource",
            }],
        }],
        "partialFingerprints": {"object/v1": print},
        "properties": {"result": claim.outcome},
    });
    if let Some(exemption) = claim.exemption {
        let until = exemption.until.as_ref();
        let until = until.map_or(String::new(), |until| format!(" (until {until})"));
        let justification = format!("{}{until}", exemption.reason);
        result["suppressions"] = json!([{"kind": "inSource", "justification": justification}]);
    }
    result
}

/// What is not rated may be bad.
fn level(severity: Option<&str>) -> &'static str {
    match severity {
        Some("critical" | "high") => "error",
        Some("low" | "info") => "note",
        _ => "warning",
    }
}

/// How bad it is as a number, as code hosts sort by it.
fn score(severity: Option<&str>) -> Option<&'static str> {
    Some(match severity? {
        "critical" => "9.5",
        "high" => "8.0",
        "medium" => "5.5",
        "low" => "2.0",
        _ => "0.0",
    })
}

/// A file as a reference from the directory in which the command runs, where it lies below that.
fn relative(file: &str, here: Option<&Path>) -> String {
    let path = Path::new(file);
    let path = here
        .and_then(|here| path.strip_prefix(here).ok())
        .unwrap_or(path);
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let path: std::path::PathBuf = parts.collect();
    let text = uri(&path.to_string_lossy());
    match path.is_absolute() {
        true => format!("file://{text}"),
        false => text,
    }
}

/// A path as a reference.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => uri.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' | b'@' | b'+' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_from_where_the_command_runs() {
        let here = Some(Path::new("/home/me/shop"));
        for (file, expected) in [
            ("web.yaml", "web.yaml"),
            ("./deploy/web one.yaml", "deploy/web%20one.yaml"),
            ("/home/me/shop/web.yaml", "web.yaml"),
            ("/etc/web.yaml", "file:///etc/web.yaml"),
            ("../web.yaml", "../web.yaml"),
        ] {
            assert_eq!(relative(file, here), expected, "{file}");
        }
    }
}
