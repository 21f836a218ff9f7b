//! What makes pods: a selector that selects the pods of its own template and does not change, and
//! a template whose pods restart the way the kind needs.

use super::{IMMUTABLE, nonnegative, pod, selector};
use crate::builtin::cell::{entries, text};
use muster_kind::FieldError;
use serde_json::{Value, json};

const MISMATCH: &str = "`selector` does not match template `labels`";

pub(in crate::builtin) fn deployment(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    nonnegative(new, "/spec/replicas", "spec.replicas", &mut errors);
    replicated(new, "deployment", "ReplicaSet", &mut errors);
    nonnegative(
        new,
        "/spec/minReadySeconds",
        "spec.minReadySeconds",
        &mut errors,
    );
    nonnegative(
        new,
        "/spec/revisionHistoryLimit",
        "spec.revisionHistoryLimit",
        &mut errors,
    );
    fixed_selector(new, old, &mut errors);
    errors
}

pub(in crate::builtin) fn replica_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    nonnegative(new, "/spec/replicas", "spec.replicas", &mut errors);
    nonnegative(
        new,
        "/spec/minReadySeconds",
        "spec.minReadySeconds",
        &mut errors,
    );
    // Kubernetes speaks of a deployment here too.
    replicated(new, "deployment", "ReplicaSet", &mut errors);
    fixed_selector(new, old, &mut errors);
    errors
}

pub(in crate::builtin) fn stateful_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    nonnegative(new, "/spec/replicas", "spec.replicas", &mut errors);
    nonnegative(
        new,
        "/spec/minReadySeconds",
        "spec.minReadySeconds",
        &mut errors,
    );
    replicated(new, "statefulset", "StatefulSet", &mut errors);
    if let Some(old) = old
        && fixed_part(new) != fixed_part(old)
    {
        errors.push(FieldError::forbidden("spec", "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"));
    }
    errors
}

fn fixed_part(set: &Value) -> Value {
    let mut spec = set["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            spec.remove(field);
        }
    }
    spec
}

pub(in crate::builtin) fn daemon_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    fixed_selector(new, old, &mut errors);
    let wanted = new.pointer("/spec/selector");
    let usable = wanted.is_none_or(|wanted| selector::check(wanted, "spec.selector", &mut errors));
    let labels = entries(new, "/spec/template/metadata/labels");
    if usable && !selector::matches(wanted, labels) {
        errors.push(mismatch(new));
    }
    if let Some(wanted) = wanted.filter(|wanted| selector::is_empty(wanted)) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid("spec.selector", wanted, detail));
    }
    always_restarting(new, "DaemonSet", &mut errors);
    nonnegative(
        new,
        "/spec/minReadySeconds",
        "spec.minReadySeconds",
        &mut errors,
    );
    nonnegative(
        new,
        "/spec/revisionHistoryLimit",
        "spec.revisionHistoryLimit",
        &mut errors,
    );
    errors
}

pub(in crate::builtin) fn replication_controller(
    new: &Value,
    _old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    nonnegative(
        new,
        "/spec/minReadySeconds",
        "spec.minReadySeconds",
        &mut errors,
    );
    let labels = entries(new, "/spec/template/metadata/labels");
    // An absent selector stands for the template's labels.
    let wanted = entries(new, "/spec/selector")
        .filter(|map| !map.is_empty())
        .or(labels);
    if wanted.is_none_or(|map| map.is_empty()) {
        errors.push(FieldError::required("spec.selector", ""));
    }
    nonnegative(new, "/spec/replicas", "spec.replicas", &mut errors);
    if new.pointer("/spec/template").is_none() {
        errors.push(FieldError::required("spec.template", ""));
        return errors;
    }
    if let Some(wanted) = wanted
        && !selector::matches(Some(&json!({"matchLabels": wanted})), labels)
    {
        errors.push(mismatch(new));
    }
    always_restarting(new, "ReplicationController", &mut errors);
    errors
}

pub(in crate::builtin) fn job(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    job_spec(new, "/spec", "spec", &mut errors);
    if let Some(old) = old
        && new.pointer("/spec/template") != old.pointer("/spec/template")
    {
        errors.push(FieldError::invalid(
            "spec.template",
            &new["spec"]["template"],
            IMMUTABLE,
        ));
    }
    errors
}

pub(in crate::builtin) fn cron_job(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let schedule = text(new, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else if fields.len() != 5 && !schedule.starts_with(['@', 'T', 'C']) {
        let detail = format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        );
        errors.push(FieldError::invalid(
            "spec.schedule",
            &schedule.into(),
            &detail,
        ));
    }
    let limits = [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ];
    for field in limits {
        nonnegative(
            new,
            &format!("/spec/{field}"),
            &format!("spec.{field}"),
            &mut errors,
        );
    }
    job_spec(
        new,
        "/spec/jobTemplate/spec",
        "spec.jobTemplate.spec",
        &mut errors,
    );
    errors
}

fn job_spec(object: &Value, pointer: &str, path: &str, errors: &mut Vec<FieldError>) {
    let spec = object.pointer(pointer).unwrap_or(&Value::Null);
    let limits = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    for field in limits {
        nonnegative(
            spec,
            &format!("/{field}"),
            &format!("{path}.{field}"),
            errors,
        );
    }
    let path = format!("{path}.template.spec");
    pod::spec(
        spec.pointer("/template/spec").unwrap_or(&Value::Null),
        &path,
        errors,
    );
    let path = format!("{path}.restartPolicy");
    match text(spec, "/template/spec/restartPolicy") {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            errors.push(FieldError::required(
                &path,
                "valid values: \"OnFailure\", \"Never\"",
            ));
        }
        other => {
            errors.push(FieldError::not_supported(
                &path,
                &other.into(),
                &["OnFailure", "Never"],
            ));
        }
    }
}

/// The selector and the template of a kind that must have both.
fn replicated(object: &Value, kind: &str, makes: &str, errors: &mut Vec<FieldError>) {
    let wanted = object.pointer("/spec/selector");
    let mut usable = true;
    match wanted {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(wanted) => {
            usable = selector::check(wanted, "spec.selector", errors);
            if selector::is_empty(wanted) {
                let detail = format!("empty selector is invalid for {kind}");
                errors.push(FieldError::invalid("spec.selector", wanted, &detail));
            }
            if !usable {
                let detail = if kind == "statefulset" {
                    ""
                } else {
                    "invalid label selector"
                };
                errors.push(FieldError::invalid("spec.selector", wanted, detail));
            }
        }
    }
    if !usable {
        return;
    }
    let labels = entries(object, "/spec/template/metadata/labels");
    if !selector::matches(wanted, labels) {
        errors.push(mismatch(object));
    }
    always_restarting(object, makes, errors);
}

/// The template of a kind whose pods run for ever.
fn always_restarting(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let spec = object
        .pointer("/spec/template/spec")
        .unwrap_or(&Value::Null);
    pod::spec(spec, "spec.template.spec", errors);
    if let Some(policy) = spec
        .get("restartPolicy")
        .filter(|policy| *policy != "Always")
    {
        let path = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(path, policy, &["Always"]));
    }
    if spec.get("activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            &detail,
        ));
    }
}

fn mismatch(object: &Value) -> FieldError {
    let labels = object
        .pointer("/spec/template/metadata/labels")
        .unwrap_or(&Value::Null);
    FieldError::invalid("spec.template.metadata.labels", labels, MISMATCH)
}

fn fixed_selector(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(old) = old else { return };
    if new.pointer("/spec/selector") != old.pointer("/spec/selector") {
        let value = new.pointer("/spec/selector").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("spec.selector", value, IMMUTABLE));
    }
}
