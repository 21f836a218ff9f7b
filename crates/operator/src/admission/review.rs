//! `admission.k8s.io/v1` AdmissionReview: what kube-apiserver sends, read once, and what it is sent
//! back. Nothing is believed about its form; what cannot be read is answered with what is wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_kind::{Status, object::meta};
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// One write, as kube-apiserver tells it.
#[derive(Clone, Debug)]
pub(super) struct Review {
    uid: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) operation: Operation,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) user: String,
    pub(super) object: Option<Value>,
    pub(super) old: Option<Value>,
    pub(super) dry_run: bool,
}

/// What a review comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The write may happen; its author is told this.
    Allowed(Vec<String>),
    /// The write may happen with these changes, operations of a JSON patch.
    Patched(Vec<Value>),
    /// It may not.
    Refused(Box<Status>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    api_version: String,
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: GroupKind,
    operation: Operation,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    user_info: User,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Deserialize)]
struct GroupKind {
    #[serde(default)]
    group: String,
    kind: String,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

impl Review {
    pub(super) fn read(body: &[u8]) -> Result<Review, Status> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!("reading an {KIND} of {API_VERSION}: {why}"))
        };
        let envelope: Envelope = serde_json::from_slice(body).map_err(|why| unreadable(&why))?;
        if (envelope.api_version.as_str(), envelope.kind.as_str()) != (API_VERSION, KIND) {
            let found = format!("it is a {:?} of {:?}", envelope.kind, envelope.api_version);
            return Err(unreadable(&found));
        }
        let request = envelope.request;
        let request = request.ok_or_else(|| unreadable(&"it asks nothing"))?;
        // A name that is still to be made is in neither place before it is made.
        let named = request.object.as_ref().or(request.old_object.as_ref());
        let name = match named.map(|object| meta(object, "name")) {
            Some(name) if request.name.is_empty() => name.to_owned(),
            _ => request.name,
        };
        Ok(Review {
            uid: request.uid,
            group: request.kind.group,
            kind: request.kind.kind,
            operation: request.operation,
            subresource: request.sub_resource,
            namespace: request.namespace,
            name,
            user: request.user_info.username,
            object: request.object,
            old: request.old_object,
            dry_run: request.dry_run.unwrap_or_default(),
        })
    }

    /// The review with its answer.
    pub(super) fn answered(&self, answer: &Answer) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": true});
        match answer {
            Answer::Allowed(warnings) if warnings.is_empty() => {}
            Answer::Allowed(warnings) => response["warnings"] = json!(warnings),
            Answer::Patched(operations) if operations.is_empty() => {}
            Answer::Patched(operations) => {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(STANDARD.encode(json!(operations).to_string()));
            }
            Answer::Refused(status) => {
                response["allowed"] = json!(false);
                response["status"] = status.to_value();
            }
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_review_is_told_what_is_wrong_with_it() {
        let review =
            |request: Value| json!({"apiVersion": API_VERSION, "kind": KIND, "request": request});
        for (body, expected) in [
            (String::new(), "EOF"),
            ("[".repeat(1000), "reading an AdmissionReview"),
            ("{}".into(), "apiVersion"),
            (
                json!({"apiVersion": "v1", "kind": "Pod"}).to_string(),
                "it is a \"Pod\" of \"v1\"",
            ),
            (review(Value::Null).to_string(), "it asks nothing"),
            (review(json!({"uid": "1"})).to_string(), "kind"),
            (
                review(json!({"uid": "1", "kind": {"kind": "X"}, "operation": "EAT"})).to_string(),
                "EAT",
            ),
        ] {
            let wrong = Review::read(body.as_bytes()).unwrap_err();
            assert_eq!(wrong.code, 400, "{body}");
            assert!(wrong.message.contains(expected), "{body}: {wrong}");
        }
    }

    #[test]
    fn an_answer_is_to_the_question_that_was_asked() {
        let body = json!({"apiVersion": API_VERSION, "kind": KIND, "request": {
            "uid": "u-1", "kind": {"group": "g", "version": "v1", "kind": "K"}, "operation": "CREATE",
            "userInfo": {"username": "jane"}, "object": {"metadata": {"name": "made"}}, "dryRun": true,
        }});
        let review = Review::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            (review.name.as_str(), review.user.as_str()),
            ("made", "jane")
        );
        assert!(review.dry_run);
        let refusal = Box::new(Status::bad_request("no"));
        for (answer, expected) in [
            (
                Answer::Allowed(Vec::new()),
                json!({"uid": "u-1", "allowed": true}),
            ),
            (
                Answer::Allowed(vec!["mind".into()]),
                json!({"uid": "u-1", "allowed": true, "warnings": ["mind"]}),
            ),
            (
                Answer::Patched(vec![json!(1)]),
                json!({"uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": "WzFd"}),
            ),
            (
                Answer::Refused(refusal.clone()),
                json!({"uid": "u-1", "allowed": false, "status": refusal.to_value()}),
            ),
        ] {
            let answered = review.answered(&answer);
            assert_eq!(answered["response"], expected);
            assert_eq!(answered["kind"], KIND);
        }
    }
}
