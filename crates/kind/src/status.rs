//! API errors: `metav1.Status` values with a constructor named after each reason. Handlers return
//! them, nothing else leaks to a client. Messages are Kubernetes' own, since clients and people
//! match on them.

use crate::kind::FieldError;
use serde_json::{Map, Value, json};
use std::fmt;

/// One cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// A reason a machine can read.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// The field concerned.
    pub field: String,
}

/// A failure as Kubernetes tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The reason, in one word.
    pub reason: &'static str,
    /// What went wrong.
    pub message: String,
    /// The object concerned.
    pub name: String,
    /// The group concerned.
    pub group: String,
    /// The kind or resource concerned.
    pub kind: String,
    /// Details, one each.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after: Option<u64>,
    /// `details` is shown even when it says nothing.
    pub details: bool,
    /// A token with which a list can go on all the same.
    pub continue_token: Option<String>,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// What a failure is about: a resource's (or kind's) name and its group.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The API group.
    pub group: &'a str,
    /// The plural resource, or the kind.
    pub resource: &'a str,
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Status {
            code,
            reason,
            message: message.into(),
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            causes: Vec::new(),
            retry_after: None,
            details: false,
            continue_token: None,
        }
    }

    fn about(mut self, about: About<'_>, name: &str) -> Self {
        self.group = about.group.into();
        self.kind = about.resource.into();
        self.name = name.into();
        self.details = true;
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Status::new(400, "BadRequest", message)
    }
    /// 401: nobody knows who asks.
    pub fn unauthorized() -> Self {
        Status::new(401, "Unauthorized", "Unauthorized")
    }
    /// 403: whoever asks may not.
    pub fn forbidden(about: About<'_>, name: &str, why: &str) -> Self {
        let message = match (about.resource, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{about} is forbidden: {why}"),
            _ => format!("{about} \"{name}\" is forbidden: {why}"),
        };
        Status::new(403, "Forbidden", message).about(about, name)
    }
    /// 404: there is no such object.
    pub fn not_found(about: About<'_>, name: &str) -> Self {
        Status::new(404, "NotFound", format!("{about} \"{name}\" not found")).about(about, name)
    }
    /// 404: there is no such path.
    pub fn no_such_path() -> Self {
        let mut status = Status::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        status.details = true;
        status
    }
    /// 405: not with this method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut status = Status::new(405, "MethodNotAllowed", message);
        status.details = true;
        status
    }
    /// 405: not this verb on this kind.
    pub fn not_supported(about: About<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{about}\"");
        Status::new(405, "MethodNotAllowed", message).about(about, "")
    }
    /// 406: no answer in a form the client takes.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        let message = format!(
            "only the following media types are accepted: {}",
            offered.join(", ")
        );
        Status::wrong_form(message)
    }
    /// 406: not in that form.
    pub fn wrong_form(message: impl Into<String>) -> Self {
        Status::new(406, "NotAcceptable", message)
    }
    /// 409: the name is taken.
    pub fn already_exists(about: About<'_>, name: &str) -> Self {
        let message = format!("{about} \"{name}\" already exists");
        Status::new(409, "AlreadyExists", message).about(about, name)
    }
    /// 409: somebody was quicker.
    pub fn conflict(about: About<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {about} \"{name}\": {why}");
        Status::new(409, "Conflict", message).about(about, name)
    }
    /// 409: the object has changed since it was read.
    pub fn modified(about: About<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(about, name, why)
    }
    /// 409: other field managers own what an apply would change.
    pub fn apply_conflict(message: String, causes: Vec<(String, String)>) -> Self {
        let mut status = Status::new(409, "Conflict", message);
        status.details = true;
        status.causes = causes
            .into_iter()
            .map(|(message, field)| Cause {
                reason: "FieldManagerConflict".into(),
                message,
                field,
            })
            .collect();
        status
    }
    /// 410: that revision is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Status::new(410, "Expired", message)
    }
    /// 413: the body is too large.
    pub fn too_large(message: impl Into<String>) -> Self {
        Status::new(413, "RequestEntityTooLarge", message)
    }
    /// 415: the body is of a kind we do not read.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Status::new(415, "UnsupportedMediaType", message)
    }
    /// 422: fields are wrong.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: Vec<FieldError>) -> Self {
        let about = About {
            group,
            resource: kind,
        };
        let lines: Vec<String> = errors
            .iter()
            .map(|e| format!("{}: {}", e.field, e.message))
            .collect();
        let list = match lines.len() {
            1 => lines.concat(),
            _ => format!("[{}]", lines.join(", ")),
        };
        let message = format!("{about} \"{name}\" is invalid: {list}");
        let mut status = Status::new(422, "Invalid", message).about(about, name);
        status.causes = errors
            .into_iter()
            .map(|e| Cause {
                reason: e.reason.into(),
                message: e.message,
                field: e.field,
            })
            .collect();
        status
    }
    /// 422: the request as a whole cannot be processed.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        let mut status = Status::new(422, "Invalid", message);
        status.details = true;
        status
    }
    /// 429: later.
    pub fn too_many(message: impl Into<String>, seconds: u64) -> Self {
        let mut status = Status::new(429, "TooManyRequests", message);
        status.retry_after = Some(seconds);
        status.details = true;
        status
    }
    /// 500: our fault.
    pub fn internal(message: impl fmt::Display) -> Self {
        let text = message.to_string();
        let mut status = Status::new(
            500,
            "InternalError",
            format!("Internal error occurred: {text}"),
        );
        status.causes = vec![Cause {
            reason: String::new(),
            message: text,
            field: String::new(),
        }];
        status.details = true;
        status
    }
    /// 500 without a reason: what Kubernetes answers where it has no better word.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Status::new(500, "", message)
    }
    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Status::new(503, "ServiceUnavailable", message)
    }
    /// 504: the revision asked for is not here yet.
    pub fn future_revision(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Status::new(504, "Timeout", message);
        status.causes = vec![Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        }];
        status.retry_after = Some(1);
        status.details = true;
        status
    }

    /// The value as JSON.
    pub fn to_value(&self) -> Value {
        let mut details = Map::new();
        let mut put = |key: &str, value: Value| {
            if value != json!("") && value != json!([]) && !value.is_null() {
                details.insert(key.into(), value);
            }
        };
        put("name", json!(self.name));
        put("group", json!(self.group));
        put("kind", json!(self.kind));
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|cause| {
                let mut value = Map::new();
                for (key, text) in [
                    ("reason", &cause.reason),
                    ("message", &cause.message),
                    ("field", &cause.field),
                ] {
                    if !text.is_empty() {
                        value.insert(key.into(), json!(text));
                    }
                }
                Value::Object(value)
            })
            .collect();
        put("causes", json!(causes));
        put("retryAfterSeconds", json!(self.retry_after));
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if self.reason.is_empty()
            && let Some(map) = status.as_object_mut()
        {
            map.remove("reason");
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        if self.details || !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_reads_as_kubernetes_writes_it() {
        let about = About {
            group: "apps",
            resource: "deployments",
        };
        let status = Status::modified(about, "web");
        assert_eq!(
            status.to_value(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your changes to the latest version and try again",
                "reason": "Conflict", "details": {"name": "web", "group": "apps", "kind": "deployments"},
                "code": 409,
            })
        );
    }

    #[test]
    fn several_invalid_fields_are_listed_in_brackets() {
        let errors = vec![
            FieldError::required("spec.a", ""),
            FieldError::forbidden("spec.b", "no"),
        ];
        let status = Status::invalid("g", "K", "n", errors);
        assert_eq!(
            status.message,
            "K.g \"n\" is invalid: [spec.a: Required value, spec.b: Forbidden: no]"
        );
        assert_eq!(status.causes.len(), 2);
    }
}
