//! Rules of Registry, and those it shares with workload scanning.

use super::{address, certificate, items, present, repositories, text};
use crate::duration::GoDuration;
use crate::platform::Platform;
use muster_kind::{FieldError, FieldPath, name};
use serde_json::Value;

/// Days of each month in a leap year: a day that comes only sometimes still comes.
const DAYS: [i64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Judges a Registry.
pub fn registry(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(uri) = text(new, "spec.uri")
        && let Some(fault) = address::registry_uri(uri)
    {
        errors.push(FieldError::invalid("spec.uri", &uri.into(), fault));
    }
    if text(new, "spec.catalogType") == Some("NoCatalog")
        && present(new, "spec.repositories").is_none()
    {
        errors.push(FieldError::required(
            "spec.repositories",
            "a registry without a catalog needs its repositories listed",
        ));
    }
    if let Some(secret) = text(new, "spec.authSecret")
        && let Some(fault) = name::subdomain(secret).into_iter().next()
    {
        let secret = secret.into();
        errors.push(FieldError::invalid("spec.authSecret", &secret, &fault));
    }
    errors.extend(repositories::repositories(new));
    errors.extend(connection(new));
    errors.extend(cron(new));
    errors
}

/// Judges how a registry is talked to, the same for a Registry and for workload scanning.
pub(super) fn connection(new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(interval) = text(new, "spec.scanInterval") {
        let fault = match interval.parse::<GoDuration>() {
            Err(error) => Some(error.to_string()),
            Ok(interval) if interval < GoDuration::MINUTE => Some("must be at least 1m".into()),
            Ok(_) => None,
        };
        let invalid =
            |fault: String| FieldError::invalid("spec.scanInterval", &interval.into(), &fault);
        errors.extend(fault.map(invalid));
    }
    if let Some(bundle) = text(new, "spec.caBundle")
        && let Some(fault) = certificate::fault(bundle)
    {
        // The bundle itself is long and says nothing to a reader.
        errors.push(FieldError::invalid(
            "spec.caBundle",
            &"<PEM>".into(),
            &fault,
        ));
    }
    for (path, value) in items(new, "spec.platforms") {
        errors.extend(platform(&path, value));
    }
    errors
}

fn platform(path: &str, value: &Value) -> Option<FieldError> {
    let Some(platform) = Platform::read(value) else {
        let missing = text(value, "os").is_some();
        return missing.then(|| FieldError::required(&format!("{path}.architecture"), ""));
    };
    let (part, supported) = platform.unknown_part()?;
    // The error is about the field that was written.
    let field = if part == "architecture" && text(value, part).is_none() {
        "arch"
    } else {
        part
    };
    let path = format!("{path}.{field}");
    if supported.is_empty() {
        return Some(FieldError::forbidden(
            &path,
            "this architecture has no variants",
        ));
    }
    Some(FieldError::not_supported(&path, &value[field], &supported))
}

/// The schema keeps each part in its range; only together can they name a day that never comes.
fn cron(new: &Value) -> Option<FieldError> {
    let part = |name: &str| {
        FieldPath::parse(&format!("spec.discoveryJob.cron.{name}"))
            .get(new)
            .and_then(Value::as_i64)
    };
    let (month, day) = (part("month")?, part("dayOfMonth")?);
    let days = DAYS.get(usize::try_from(month - 1).ok()?)?;
    (day > *days).then(|| {
        FieldError::invalid(
            "spec.discoveryJob.cron.dayOfMonth",
            &day.into(),
            &format!("month {month} has no such day"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_registry_is_refused_field_by_field() {
        let repositories = json!([{"name": "a"}]);
        for (spec, fields) in [
            (json!({"uri": "ghcr.io"}), &[][..]),
            (json!({"uri": "ftp://ghcr.io"}), &["spec.uri"]),
            (json!({"uri": "a", "authSecret": "pull-secret"}), &[]),
            (
                json!({"uri": "a", "authSecret": "a/b"}),
                &["spec.authSecret"],
            ),
            (
                json!({"uri": "a", "catalogType": "NoCatalog"}),
                &["spec.repositories"],
            ),
            (
                json!({"uri": "a", "catalogType": "NoCatalog", "repositories": repositories}),
                &[],
            ),
            (json!({"uri": "a", "scanInterval": "1m"}), &[]),
            (json!({"uri": "a", "scanInterval": ""}), &[]),
            (
                json!({"uri": "a", "scanInterval": "59s"}),
                &["spec.scanInterval"],
            ),
            (
                json!({"uri": "a", "scanInterval": "-1h"}),
                &["spec.scanInterval"],
            ),
            (
                json!({"uri": "a", "scanInterval": "1d"}),
                &["spec.scanInterval"],
            ),
            (
                json!({"uri": "a", "caBundle": "trust me"}),
                &["spec.caBundle"],
            ),
            (
                json!({"uri": "a", "platforms": [{"os": "linux", "architecture": "amd64"}]}),
                &[],
            ),
            (
                json!({"uri": "a", "platforms": [{"os": "linux", "arch": "amd64"}]}),
                &[],
            ),
            (
                json!({"uri": "a", "platforms": [{"os": "linux"}]}),
                &["spec.platforms[0].architecture"],
            ),
            (
                json!({"uri": "a", "platforms": [{"os": "linux", "arch": "x86"}]}),
                &["spec.platforms[0].arch"],
            ),
            (
                json!({"uri": "a", "platforms": [
                    {"os": "linux", "architecture": "arm", "variant": "v9"},
                    {"os": "linux", "architecture": "s390x", "variant": "v1"},
                    {"os": "beos", "architecture": "amd64"},
                ]}),
                &[
                    "spec.platforms[0].variant",
                    "spec.platforms[1].variant",
                    "spec.platforms[2].os",
                ],
            ),
            (
                json!({"uri": "a", "discoveryJob": {"cron": {"month": 2, "dayOfMonth": 29}}}),
                &[],
            ),
            (
                json!({"uri": "a", "discoveryJob": {"cron": {"month": 2, "dayOfMonth": 30}}}),
                &["spec.discoveryJob.cron.dayOfMonth"],
            ),
            (
                json!({"uri": "a", "discoveryJob": {"cron": {"month": null, "dayOfMonth": 31}}}),
                &[],
            ),
        ] {
            let object = json!({ "spec": spec });
            check::fields(&registry(&object, None), fields, &object.to_string());
        }
    }

    #[test]
    fn a_complaint_says_what_would_be_right() {
        let object =
            json!({"spec": {"scanInterval": "1d", "platforms": [{"os": "aix", "arch": "x"}]}});
        assert_eq!(
            check::lines(&registry(&object, None)),
            [
                r#"spec.scanInterval: Invalid value: "1d": time: unknown unit "d" in duration "1d""#,
                r#"spec.platforms[0].arch: Unsupported value: "x": supported values: "ppc64""#,
            ]
        );
    }
}
