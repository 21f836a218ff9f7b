//! ConfigMaps, Secrets, Namespaces and Leases.

use super::IMMUTABLE;
use crate::builtin::cell::{entries, items, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_kind::{FieldError, name};
use serde_json::{Map, Value};

const MOST_BYTES: usize = 1024 * 1024;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(in crate::builtin) fn config_map(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    frozen(new, old, &["data", "binaryData"], &mut errors);
    let binary = entries(new, "/binaryData");
    let mut size = 0;
    for (key, value) in entries(new, "/data").into_iter().flatten() {
        check_key("data", key, &mut errors);
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(
                &format!("data[{key}]"),
                &key.as_str().into(),
                detail,
            ));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary.into_iter().flatten() {
        check_key("binaryData", key, &mut errors);
        size += decoded_length(value);
    }
    if size > MOST_BYTES {
        errors.push(too_long("[]"));
    }
    errors
}

pub(in crate::builtin) fn secret(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(old) = old
        && new.get("type") != old.get("type")
    {
        errors.push(FieldError::invalid("type", &new["type"], IMMUTABLE));
    }
    frozen(new, old, &["data"], &mut errors);
    let empty = Map::new();
    let data = entries(new, "/data").unwrap_or(&empty);
    data.keys()
        .for_each(|key| check_key("data", key, &mut errors));
    if data.values().map(decoded_length).sum::<usize>() > MOST_BYTES {
        errors.push(too_long("data"));
    }
    let mut require = |key: &str| {
        if !data.contains_key(key) {
            errors.push(FieldError::required(&format!("data[{key}]"), ""));
        }
    };
    match text(new, "/type") {
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            let value = new
                .pointer("/metadata/annotations")
                .and_then(|map| map.get(annotation));
            if value.and_then(Value::as_str).is_none_or(str::is_empty) {
                let path = format!("metadata.annotations[{annotation}]");
                errors.push(FieldError::required(&path, ""));
            }
        }
        "kubernetes.io/dockercfg" => docker(data, ".dockercfg", &mut errors),
        "kubernetes.io/dockerconfigjson" => docker(data, ".dockerconfigjson", &mut errors),
        // Either may be missing, but not both.
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            require("username");
            require("password");
        }
        // Unlike the others, this key may not be empty either.
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_none_or(|key| *key == "") => {
            errors.push(FieldError::required("data[ssh-privatekey]", ""));
        }
        "kubernetes.io/tls" => {
            require("tls.crt");
            require("tls.key");
        }
        _ => {}
    }
    errors
}

/// Credentials for registries are a JSON object; what is in it is nobody's business here.
fn docker(data: &Map<String, Value>, key: &str, errors: &mut Vec<FieldError>) {
    let path = format!("data[{key}]");
    let Some(value) = data.get(key) else {
        errors.push(FieldError::required(&path, ""));
        return;
    };
    let bytes = STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap_or_default();
    let problem = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            }
        ),
        Err(error) if error.is_eof() => "unexpected end of JSON input".into(),
        Err(_) => "invalid character in JSON input".into(),
    };
    errors.push(FieldError::invalid(
        &path,
        &"<secret contents redacted>".into(),
        &problem,
    ));
}

pub(in crate::builtin) fn namespace(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_some() {
        return errors;
    }
    for finalizer in items(new, "/spec/finalizers") {
        let text = finalizer.as_str().unwrap_or_default();
        for wrong in name::qualified(text) {
            errors.push(FieldError::invalid("spec.finalizers", finalizer, &wrong));
        }
        if !text.contains('/') && !matches!(text, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid("spec.finalizers", finalizer, detail));
        }
    }
    errors
}

pub(in crate::builtin) fn lease(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(value) = new.pointer("/spec/leaseDurationSeconds")
        && value.as_i64().is_some_and(|seconds| seconds <= 0)
    {
        let path = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(path, value, "must be greater than 0"));
    }
    super::nonnegative(
        new,
        "/spec/leaseTransitions",
        "spec.leaseTransitions",
        &mut errors,
    );
    errors
}

/// An immutable object stays immutable, and so does its data.
fn frozen(new: &Value, old: Option<&Value>, fields: &[&str], errors: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return;
    };
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", FROZEN));
    }
    for field in fields {
        let pointer = format!("/{field}");
        let filled = |object| entries(object, &pointer).filter(|map| !map.is_empty());
        if filled(new) != filled(old) {
            errors.push(FieldError::forbidden(field, FROZEN));
        }
    }
}

fn check_key(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{field}[{key}]");
    let mut wrong = |detail: &str| errors.push(FieldError::invalid(&path, &key.into(), detail));
    if key.len() > 253 {
        wrong("must be no more than 253 characters");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if key.is_empty() || !key.chars().all(allowed) {
        wrong(KEY);
    }
    match key {
        "." => wrong("must not be '.'"),
        ".." => wrong("must not be '..'"),
        key if key.starts_with("..") => wrong("must not start with '..'"),
        _ => {}
    }
}

/// How many bytes base64 text stands for.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.trim_end_matches('=').len() * 3 / 4
}

fn too_long(field: &str) -> FieldError {
    FieldError {
        reason: "FieldValueTooLong",
        field: field.into(),
        message: format!("Too long: may not be more than {MOST_BYTES} bytes"),
    }
}
