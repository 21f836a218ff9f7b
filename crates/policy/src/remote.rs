//! A policy that a running policy server judges. It is asked what an API server would ask it, at the
//! address where it gives its own verdict and not the one that admission makes of it. Whatever the
//! server does (nothing, nonsense, gigabytes) is a verdict within the time; and the same trouble has
//! the same message each time, since messages are what a report is compared by.

use crate::evaluate::Evaluator;
use crate::request::Request;
use crate::verdict::{Cause, INTERNAL_ERROR, Verdict};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio::runtime::Handle;

/// The largest answer that is read, in bytes.
const LARGEST: usize = 4 << 20;
/// The longest reason that a server gives for a refusal and that is told, in characters.
const LONGEST_REASON: usize = 256;
/// Where the members of a group are in the causes of its verdict.
const MEMBERS: &str = "spec.policies.";

/// A policy on a policy server.
#[derive(Clone, Debug)]
pub struct RemotePolicy {
    client: Client,
    /// The server, for people.
    server: String,
    name: String,
    url: Option<Url>,
    time: Duration,
    runtime: Handle,
}

/// Why there is no answer. Only a connection that was closed is worth another try.
enum Trouble {
    Closed,
    Other(String),
}

#[derive(Deserialize)]
struct Review {
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: String,
    allowed: bool,
    patch_type: Option<String>,
    patch: Option<String>,
    status: Option<Status>,
    warnings: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
struct Status {
    message: Option<String>,
    code: Option<i64>,
    details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    causes: Option<Vec<WrittenCause>>,
}

#[derive(Deserialize)]
struct WrittenCause {
    field: Option<String>,
    message: Option<String>,
}

impl RemotePolicy {
    /// The policy of this unique name on the server at `address`. `time` is for everything: the
    /// connection, the evaluation there, and the answer. The client says who we are and whom we trust;
    /// it should follow no redirects.
    pub fn new(
        client: Client,
        address: &str,
        unique_name: &str,
        time: Duration,
        runtime: Handle,
    ) -> RemotePolicy {
        RemotePolicy {
            client,
            server: address.trim_end_matches('/').to_owned(),
            name: unique_name.to_owned(),
            url: place(address, unique_name),
            time,
            runtime,
        }
    }

    async fn ask(&self, request: &Request) -> Result<Verdict, String> {
        let Some(url) = &self.url else {
            return Err("its address cannot be used".into());
        };
        let body = review(request);
        let asking = async {
            // A connection that was kept may be closed at the moment when it is used again. To judge
            // changes nothing, so asking twice does no harm.
            match self.exchange(url, body.clone()).await {
                Err(Trouble::Closed) => self.exchange(url, body).await,
                outcome => outcome,
            }
        };
        let (status, answer) = match tokio::time::timeout(self.time, asking).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(Trouble::Other(why))) => return Err(why),
            Ok(Err(Trouble::Closed)) if url.scheme() == "https" => {
                return Err(
                    "it closes the connection without an answer; it may want another \
                            client certificate"
                        .into(),
                );
            }
            Ok(Err(Trouble::Closed)) => {
                return Err("it closes the connection without an answer".into());
            }
            Err(_) => return Err(format!("it gives no answer within {:?}", self.time)),
        };
        match status {
            StatusCode::OK => read(request, &answer),
            StatusCode::NOT_FOUND => Err(format!("it does not know the policy {}", self.name)),
            status => Err(format!("it answers {status}{}", reason(&answer))),
        }
    }

    async fn exchange(&self, url: &Url, body: Vec<u8>) -> Result<(StatusCode, Vec<u8>), Trouble> {
        let sending = self.client.post(url.clone()).body(body);
        let sending = sending.header("content-type", "application/json");
        let mut answer = sending.send().await.map_err(trouble)?;
        let mut whole = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(trouble)? {
            if whole.len() + piece.len() > LARGEST {
                let why = format!("its answer is larger than {LARGEST} bytes");
                return Err(Trouble::Other(why));
            }
            whole.extend_from_slice(&piece);
        }
        Ok((answer.status(), whole))
    }
}

impl Evaluator for RemotePolicy {
    fn judge(&self, request: &Request) -> Verdict {
        let asked = self.runtime.block_on(self.ask(request));
        asked.unwrap_or_else(|why| {
            Verdict::error(format!("the policy server {}: {why}", self.server))
        })
    }

    fn is_remote(&self) -> bool {
        true
    }
}

/// Where a server has a policy; none if the address makes no sense.
fn place(address: &str, unique_name: &str) -> Option<Url> {
    let mut url = Url::parse(address).ok()?;
    if !matches!(url.scheme(), "https" | "http") {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty().push("audit").push(unique_name);
    drop(path);
    Some(url)
}

fn review(request: &Request) -> Vec<u8> {
    let head = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"#;
    [head, request.json(), b"}"].concat()
}

fn read(request: &Request, answer: &[u8]) -> Result<Verdict, String> {
    let review: Review =
        serde_json::from_slice(answer).map_err(|_| "its answer is no AdmissionReview")?;
    let response = review.response;
    if response.uid != request.uid {
        return Err("its answer is about another object".into());
    }
    let status = response.status.unwrap_or_default();
    let message = status.message.unwrap_or_default();
    let verdict = if status.code == Some(INTERNAL_ERROR) {
        // The policy did not come to a verdict, whatever else the answer says.
        return Err(match message.trim() {
            "" => "it could not evaluate the policy, and does not say why".into(),
            message => message.into(),
        });
    } else if response.allowed {
        Verdict::pass().with_patch(patch(response.patch_type, response.patch)?)
    } else {
        let causes = status.details.and_then(|details| details.causes);
        let causes = causes.unwrap_or_default().into_iter().map(|cause| {
            let field = cause.field.unwrap_or_default();
            Cause {
                policy: field.strip_prefix(MEMBERS).unwrap_or(&field).into(),
                message: crate::verdict::clip(&cause.message.unwrap_or_default()),
            }
        });
        // Those without a field explain the message of a policy that is no group.
        let causes = causes.filter(|cause| !cause.policy.is_empty());
        Verdict::fail(message).with_causes(causes)
    };
    Ok(verdict.with_warnings(response.warnings.unwrap_or_default()))
}

fn patch(sort: Option<String>, patch: Option<String>) -> Result<Vec<Value>, String> {
    let Some(encoded) = patch.filter(|patch| !patch.is_empty()) else {
        return Ok(Vec::new());
    };
    if sort.as_deref() != Some("JSONPatch") {
        return Err("its answer has a patch that is no JSON patch".into());
    }
    let decoded = STANDARD.decode(encoded).ok();
    let read = decoded.and_then(|json| serde_json::from_slice(&json).ok());
    read.ok_or_else(|| "its answer has a patch that cannot be read".into())
}

/// What a refusal says, if it says it as policy servers do.
fn reason(answer: &[u8]) -> String {
    let said: Option<Value> = serde_json::from_slice(answer).ok();
    let said = said.as_ref().and_then(|said| said["message"].as_str());
    match said {
        Some(said) => {
            let short: String = said.chars().take(LONGEST_REASON).collect();
            format!(": {short}")
        }
        None => String::new(),
    }
}

/// What went wrong on the way, without anything that would be another text each time.
fn trouble(error: reqwest::Error) -> Trouble {
    let mut next: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = next {
        // An I/O error hides what it wraps from the chain.
        let wrapped = one
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        if let Some(fault) = one.downcast_ref::<rustls::Error>() {
            return of_tls(fault);
        }
        if let Some(fault) = one.downcast_ref::<io::Error>()
            && wrapped.is_none()
        {
            return match (fault.kind(), error.is_connect()) {
                (io::ErrorKind::ConnectionRefused, _) => {
                    Trouble::Other("nobody listens there".into())
                }
                (io::ErrorKind::TimedOut, _) => Trouble::Other("it cannot be reached".into()),
                (_, true) => Trouble::Other("it cannot be reached".into()),
                _ => Trouble::Closed,
            };
        }
        next = wrapped.or_else(|| one.source());
    }
    match error.is_connect() || error.is_timeout() {
        true => Trouble::Other("it cannot be reached".into()),
        false => Trouble::Closed,
    }
}

fn of_tls(fault: &rustls::Error) -> Trouble {
    use rustls::CertificateError;
    match fault {
        // How it refuses ours; or it is closed before that is heard.
        rustls::Error::AlertReceived(_) => Trouble::Closed,
        // These tell the time.
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => Trouble::Other("its certificate has expired".into()),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => Trouble::Other("its certificate is not yet valid".into()),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            Trouble::Other("its certificate is of an authority that is not trusted".into())
        }
        fault => Trouble::Other(format!("no TLS connection: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Outcome;
    use serde_json::json;

    fn request() -> Request {
        Request::create("pods", json!({"metadata": {"uid": "u"}}))
    }

    #[test]
    fn an_answer_is_read_as_the_server_means_it() {
        let encoded = STANDARD.encode(r#"[{"op":"remove","path":"/a"}]"#);
        for (response, outcome, message) in [
            (json!({"uid": "u", "allowed": true}), Outcome::Pass, ""),
            (
                json!({"uid": "u", "allowed": false, "status": {"code": 400, "message": "no"}}),
                Outcome::Fail,
                "no",
            ),
            (json!({"uid": "u", "allowed": false}), Outcome::Fail, ""),
            (
                json!({"uid": "u", "allowed": false, "status": {"code": 500, "message": "boom"}}),
                Outcome::Error,
                "boom",
            ),
            (
                json!({"uid": "u", "allowed": false, "status": {"code": 500}}),
                Outcome::Error,
                "it could not evaluate the policy, and does not say why",
            ),
            (
                json!({"uid": "u", "allowed": true, "status": {"code": 500, "message": "boom"}}),
                Outcome::Error,
                "boom",
            ),
            (
                json!({"uid": "other", "allowed": true}),
                Outcome::Error,
                "its answer is about another object",
            ),
            (
                json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": encoded}),
                Outcome::Pass,
                "",
            ),
            (
                json!({"uid": "u", "allowed": true, "patchType": "Other", "patch": encoded}),
                Outcome::Error,
                "its answer has a patch that is no JSON patch",
            ),
            (
                json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "?"}),
                Outcome::Error,
                "its answer has a patch that cannot be read",
            ),
            (
                json!({"uid": "u"}),
                Outcome::Error,
                "its answer is no AdmissionReview",
            ),
        ] {
            let answer = json!({"response": response}).to_string();
            let verdict = read(&request(), answer.as_bytes()).unwrap_or_else(Verdict::error);
            assert_eq!(verdict.outcome, outcome, "{answer}");
            assert_eq!(verdict.message, message, "{answer}");
            assert_eq!(
                verdict.patch.is_some(),
                outcome == Outcome::Pass && answer.contains("patch"),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_members_of_a_group_that_decided_are_told() {
        let answer = json!({"response": {"uid": "u", "allowed": false, "warnings": ["old"],
        "status": {"message": "no", "details": {"causes": [
            {"field": "spec.policies.a", "message": "too bad"},
            {"message": "of nobody"},
        ]}}}});
        let verdict = read(&request(), answer.to_string().as_bytes()).unwrap();
        let told: Vec<_> = verdict
            .causes
            .iter()
            .map(|cause| (cause.policy.as_str(), cause.message.as_str()))
            .collect();
        assert_eq!(told, [("a", "too bad")]);
        assert_eq!(verdict.warnings, ["old"]);
    }

    #[test]
    fn a_policy_is_one_place_on_its_server_whatever_it_is_called() {
        for (address, name, expected) in [
            (
                "https://h:1",
                "clusterwide-a",
                Some("https://h:1/audit/clusterwide-a"),
            ),
            ("https://h/base/", "a", Some("https://h/base/audit/a")),
            ("https://h?x#y", "a", Some("https://h/audit/a")),
            (
                "https://h",
                "a/../b?c",
                Some("https://h/audit/a%2F..%2Fb%3Fc"),
            ),
            ("file:///etc", "a", None),
            ("h:1", "a", None),
            ("", "a", None),
        ] {
            let found = place(address, name).map(String::from);
            assert_eq!(found.as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn a_review_is_json() {
        let review: Value = serde_json::from_slice(&review(&request())).unwrap();
        assert_eq!(review["kind"], "AdmissionReview");
        assert_eq!(review["request"]["uid"], "u");
    }
}
