//! What a case may say: requests and watches, the values carried from one to the next, and what
//! of an answer is compared.

use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::Request;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Both servers are told the same client name: it becomes the field manager of plain writes.
const USER_AGENT: &str = "differential/1.0";

/// Short names for the collections, usable as `{registries}` in targets.
const COLLECTIONS: &[(&str, &str)] = &[
    (
        "registries",
        "/apis/sbomscanner.kubewarden.io/v1alpha1/namespaces/{ns}/registries",
    ),
    (
        "scanjobs",
        "/apis/sbomscanner.kubewarden.io/v1alpha1/namespaces/{ns}/scanjobs",
    ),
    (
        "vexhubs",
        "/apis/sbomscanner.kubewarden.io/v1alpha1/vexhubs",
    ),
    ("group", "/apis/sbomscanner.kubewarden.io"),
    ("configmaps", "/api/v1/namespaces/{ns}/configmaps"),
    ("secrets", "/api/v1/namespaces/{ns}/secrets"),
    (
        "leases",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    ),
    ("namespaces", "/api/v1/namespaces"),
];

/// What `a: Registry` at the root of a body stands for.
const KINDS: &[(&str, &str)] = &[
    ("Registry", "sbomscanner.kubewarden.io/v1alpha1"),
    ("ScanJob", "sbomscanner.kubewarden.io/v1alpha1"),
    ("VEXHub", "sbomscanner.kubewarden.io/v1alpha1"),
    ("ConfigMap", "v1"),
    ("Secret", "v1"),
    ("Namespace", "v1"),
    ("DeleteOptions", "v1"),
    ("Lease", "coordination.k8s.io/v1"),
];

/// Steps in a namespace of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The file's topic.
    #[serde(skip)]
    pub topic: String,
    /// A sentence of behaviour.
    pub case: String,
    /// In order.
    pub steps: Vec<Step>,
}

impl Case {
    /// Topic and sentence, the case's name in reports.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.topic, self.case)
    }

    /// How many requests the case makes.
    pub(super) fn requests(&self) -> usize {
        self.steps.iter().map(|step| 1 + step.during.len()).sum()
    }
}

/// One request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    /// `GET {registries}/a`, or `WATCH {registries}` for an answer that is read event by event.
    #[serde(rename = "do")]
    pub request: String,
    /// Query parameters, unencoded; they may also stand in the target, encoded.
    pub query: BTreeMap<String, String>,
    /// A body, sent as JSON. At its root `a: Registry` stands for `apiVersion` and `kind`.
    pub body: Option<Value>,
    /// A body, sent as it stands here.
    pub text: Option<String>,
    /// A body of these bytes, for what is not UTF-8.
    pub bytes: Option<Vec<u8>>,
    /// The body's `Content-Type`; JSON if not said, no header if empty.
    #[serde(rename = "type")]
    pub content_type: Option<String>,
    /// The `Accept` header; JSON if not said.
    pub accept: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Ask without any credentials.
    pub stranger: bool,
    /// Values of the answer kept for later steps: name to JSON pointer.
    pub save: BTreeMap<String, String>,
    /// Compare only this part: field names, or `field.path=value` to choose an item of an array.
    pub pick: Vec<String>,
    /// Repeat the request until this status code comes.
    pub eventually: Option<u16>,
    /// Of a watch: hang up after this many events instead of waiting for the server's end.
    pub events: Option<usize>,
    /// Of a watch: what happens while it is open.
    pub during: Vec<Step>,
}

/// What a server said, as far as it is compared.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Answer {
    /// The step as written in the corpus.
    pub step: String,
    /// The collection asked, to which revisions belong.
    #[serde(skip)]
    pub collection: String,
    /// The start of a generated name, when the request asked for one.
    #[serde(skip)]
    pub generate_name: Option<String>,
    /// The status code.
    pub status: u16,
    /// The headers that matter.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The body: JSON, or a string if it is none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// The events of a watch, and how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Value>>,
}

/// The values known while a case runs.
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    /// At the start only the case's namespace is known, and where the collections are.
    pub(super) fn new(namespace: &str) -> Values {
        let mut values = BTreeMap::from([("ns".to_string(), namespace.to_string())]);
        for (name, target) in COLLECTIONS {
            values.insert(name.to_string(), target.replace("{ns}", namespace));
        }
        Values(values)
    }

    /// Keeps a value.
    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.into(), value);
    }

    /// The text with every known `{name}` replaced; other braces stay.
    pub(super) fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_string(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }
}

impl Step {
    /// The step in reports: what it asks, before values are filled in.
    pub(super) fn title(&self) -> String {
        let query: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match query.is_empty() {
            true => self.request.clone(),
            false => format!("{}?{}", self.request, query.join("&")),
        }
    }

    /// Whether the answer is to be read event by event.
    pub(super) fn is_watch(&self) -> bool {
        self.request.starts_with("WATCH ")
    }

    /// The start of a generated name that the body asks for.
    pub(super) fn generate_name(&self, values: &Values) -> Option<String> {
        let name = self
            .body
            .as_ref()?
            .pointer("/metadata/generateName")?
            .as_str()?;
        Some(values.fill(name))
    }

    /// The request to send.
    pub(super) fn request(&self, values: &Values) -> Result<Request> {
        let (method, target) = self
            .request
            .split_once(' ')
            .context("not `METHOD target`")?;
        let method = if self.is_watch() {
            Method::GET
        } else {
            Method::from_bytes(method.as_bytes())?
        };
        let mut target = values.fill(target);
        let mut separator = if target.contains('?') { '&' } else { '?' };
        let watch = self.is_watch().then_some(("watch", "true".to_string()));
        let named = self
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), values.fill(value)));
        for (name, value) in watch.into_iter().chain(named) {
            let value = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
            target.push_str(&format!("{separator}{name}={value}"));
            separator = '&';
        }
        let mut request = Request::new(method, target)
            .header("user-agent", USER_AGENT)?
            .header(
                "accept",
                self.accept.as_deref().unwrap_or("application/json"),
            )?;
        for (name, value) in &self.headers {
            request = request.header(name, &values.fill(value))?;
        }
        if let Some(body) = self.payload(values)? {
            request.body = body.into();
            match self.content_type.as_deref() {
                Some("") => {}
                other => {
                    request =
                        request.header("content-type", other.unwrap_or("application/json"))?;
                }
            }
        }
        Ok(request)
    }

    fn payload(&self, values: &Values) -> Result<Option<Vec<u8>>> {
        Ok(match (&self.body, &self.text, &self.bytes) {
            (Some(body), _, _) => Some(values.fill(&spelled_out(body)?.to_string()).into_bytes()),
            (None, Some(text), _) => Some(values.fill(text).into_bytes()),
            (None, None, bytes) => bytes.clone(),
        })
    }
}

/// The body with `a: Registry` spelled out.
fn spelled_out(body: &Value) -> Result<Value> {
    let mut body = body.clone();
    if let Some(object) = body.as_object_mut()
        && let Some(Value::String(kind)) = object.remove("a")
    {
        let (_, version) = KINDS
            .iter()
            .find(|(name, _)| *name == kind)
            .context(kind.clone())?;
        object.insert("apiVersion".into(), (*version).into());
        object.insert("kind".into(), kind.into());
    }
    Ok(body)
}
