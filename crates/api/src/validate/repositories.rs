//! Rules of the repositories of a Registry: names that can exist, each once, and conditions that
//! can be judged. A condition that is refused here would otherwise fail every scan.

use super::{items, text};
use crate::filter::MatchCondition;
use crate::guard::{MANAGED_BY, WORKLOAD_SCAN};
use muster_kind::{FieldError, FieldPath, name};
use serde_json::Value;
use std::collections::BTreeSet;

/// Docker Hub's names, where `busybox` is `library/busybox`.
const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// How many expressions a Registry may have that do more than name a tag or a digest: each is
/// compiled whenever the Registry is written or scanned.
const EXPRESSIONS: usize = 256;

/// Judges the repositories of a Registry.
pub(super) fn repositories(new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    let mut expressions = 0;
    let is_hub = text(new, "spec.uri").is_some_and(is_docker_hub);
    for (path, repository) in items(new, "spec.repositories") {
        if let Some(name) = text(repository, "name") {
            let field = format!("{path}.name");
            let whole = match is_hub && !name.contains('/') {
                true => format!("library/{name}"),
                false => name.to_owned(),
            };
            if let Some(fault) = repository_fault(name) {
                errors.push(FieldError::invalid(&field, &name.into(), fault));
            } else if !seen.insert(whole.clone()) && whole != name {
                // The schema sees to names that are the same letter by letter.
                errors.push(FieldError::duplicate(&field, &whole.into()));
            }
        }
        for (condition, value) in items(repository, "matchConditions") {
            let path = format!("{path}.{condition}");
            errors.extend(expression(&path, value, &mut expressions));
            errors.extend(labels(&path, value));
        }
    }
    errors
}

fn expression(path: &str, condition: &Value, expressions: &mut usize) -> Option<FieldError> {
    let text = text(condition, "expression")?;
    let field = format!("{path}.expression");
    let refused = |why: &str| Some(FieldError::invalid(&field, &text.into(), why));
    // Past the limit nothing is compiled any more.
    if *expressions > EXPRESSIONS {
        return None;
    }
    match MatchCondition::parse(text) {
        Err(error) => refused(&error.to_string()),
        Ok(condition) => {
            *expressions += usize::from(condition.exact().is_none());
            let why = format!(
                "a Registry may have {EXPRESSIONS} expressions that do not just name a tag or a digest"
            );
            (*expressions > EXPRESSIONS)
                .then(|| refused(&why))
                .flatten()
        }
    }
}

/// The labels go to Images, where some say what only we may say.
fn labels(path: &str, condition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = format!("{path}.labels");
    let Some(Value::Object(labels)) = FieldPath::parse("labels").get(condition) else {
        return errors;
    };
    let ours = WORKLOAD_SCAN.split('/').next().unwrap_or_default();
    for (key, value) in labels {
        let field = format!("{path}[{key}]");
        let reserved = key == MANAGED_BY || key.split_once('/').is_some_and(|(p, _)| p == ours);
        for fault in name::label_key(key) {
            errors.push(FieldError::invalid(&path, &key.as_str().into(), &fault));
        }
        if reserved {
            errors.push(FieldError::forbidden(&field, "this label is set by scans"));
        }
        let faults = value.as_str().map(name::label_value).unwrap_or_default();
        for fault in faults {
            errors.push(FieldError::invalid(&field, value, &fault));
        }
    }
    errors
}

fn is_docker_hub(uri: &str) -> bool {
    let host = uri.split_once("://").map_or(uri, |(_, host)| host);
    let host = host.trim_end_matches('/').to_ascii_lowercase();
    HUB.contains(&host.as_str())
}

fn repository_fault(name: &str) -> Option<&'static str> {
    let component = |part: &str| {
        let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        part.as_bytes().first().is_some_and(edge)
            && part.as_bytes().last().is_some_and(edge)
            && part
                .bytes()
                .all(|b| edge(&b) || matches!(b, b'.' | b'_' | b'-'))
    };
    (!name.split('/').all(component)).then_some(
        "must be a repository path: lower case letters, digits, '.', '_' and '-' between slashes, \
         without host, tag or digest",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    fn judged(uri: &str, list: Value) -> Vec<FieldError> {
        repositories(&json!({"spec": {"uri": uri, "repositories": list}}))
    }

    #[test]
    fn a_repository_is_a_path_and_is_named_once() {
        for (uri, names, fields) in [
            ("a", &["kubewarden/sbom_scanner.x"][..], &[][..]),
            (
                "a",
                &["A", "b:1", "/c"],
                &[
                    "spec.repositories[0].name",
                    "spec.repositories[1].name",
                    "spec.repositories[2].name",
                ],
            ),
            ("a", &["busybox", "library/busybox"], &[]),
            (
                "https://registry-1.docker.io",
                &["library/busybox", "team/busybox", "busybox"],
                &["spec.repositories[2].name"],
            ),
        ] {
            let list = names.iter().map(|name| json!({ "name": name })).collect();
            check::fields(&judged(uri, list), fields, &format!("{uri}: {names:?}"));
        }
    }

    #[test]
    fn a_condition_is_refused_where_it_stands() {
        const PLACE: &str = "spec.repositories[0].matchConditions[1]";
        for (condition, fields) in [
            (json!({"name": "a", "expression": "tag == 'x'"}), &[][..]),
            (json!({"name": "a", "expression": "tag"}), &[".expression"]),
            (
                json!({"name": "a", "expression": "tag =="}),
                &[".expression"],
            ),
            (
                json!({"name": "a", "expression": "true", "labels": {"team-a": "true", "x/y": ""}}),
                &[],
            ),
            (
                json!({"name": "a", "expression": "true", "labels": {"a b": "true", "c": "?"}}),
                &[".labels", ".labels[c]"],
            ),
            (
                json!({"name": "a", "expression": "true", "labels": {
                    "sbomscanner.kubewarden.io/scanjob-uid": "x",
                    "app.kubernetes.io/managed-by": "me",
                }}),
                &[
                    ".labels[app.kubernetes.io/managed-by]",
                    ".labels[sbomscanner.kubewarden.io/scanjob-uid]",
                ],
            ),
        ] {
            let first = json!({"name": "first", "expression": "true"});
            let list = json!([{"name": "a", "matchConditions": [first, condition]}]);
            let fields: Vec<String> = fields.iter().map(|end| format!("{PLACE}{end}")).collect();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            check::fields(&judged("a", list), &fields, &condition.to_string());
        }
        let list = json!([{"name": "a", "matchConditions": [{"name": "a", "expression": "1"}]}]);
        assert_eq!(
            check::lines(&judged("a", list)),
            [
                r#"spec.repositories[0].matchConditions[0].expression: Invalid value: "1": must yield bool and not int"#
            ]
        );
    }

    #[test]
    fn thousands_of_tags_may_be_named_and_only_some_computed() {
        let conditions = |expression: &dyn Fn(usize) -> String, count: usize| {
            let condition =
                |index| json!({"name": format!("c{index}"), "expression": expression(index)});
            let list: Vec<Value> = (0..count).map(condition).collect();
            judged("a", json!([{"name": "a", "matchConditions": list}]))
        };
        let named = |index: usize| format!("tag == \"v1.{index}\"");
        assert!(conditions(&named, 3000).is_empty());
        let computed = |index: usize| format!("tag.startsWith(\"v1.{index}\")");
        assert!(conditions(&computed, EXPRESSIONS).is_empty());
        let errors = conditions(&computed, EXPRESSIONS + 50);
        let place = format!("spec.repositories[0].matchConditions[{EXPRESSIONS}].expression");
        check::fields(&errors, &[&place], "one too many");
    }
}
