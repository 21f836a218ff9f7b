//! What is asked of an API server for a policy: which resource a kind is, one object, or all of them
//! page by page. No answer is read that is larger than it may be. Only a 404 for the object itself says
//! that it does not exist; everything else that goes wrong says nothing about it.

use super::Question;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use muster_policy::evaluate::LookupError;
use muster_policy::request::GroupVersionKind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For how long it is believed what a kind is served as.
const DISCOVERED: Duration = Duration::from_secs(60);
/// What stands for itself in a path.
const SEGMENT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An answer, and how many bytes it was.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) size: usize,
}

/// What a kind is served as.
#[derive(Clone)]
struct Resource {
    plural: String,
    namespaced: bool,
}

/// The API of a cluster.
pub(super) struct Api {
    client: kube::Client,
    largest: usize,
    page: usize,
    resources: Mutex<HashMap<GroupVersionKind, (Instant, Resource)>>,
}

impl Api {
    pub(super) fn new(client: kube::Client, largest: usize, page: usize) -> Api {
        Api {
            client,
            largest,
            page,
            resources: Mutex::default(),
        }
    }

    pub(super) async fn ask(&self, question: &Question) -> Result<Found, LookupError> {
        let resource = self.resource(&question.kind).await?;
        let mut path = base(&question.kind)?;
        match (&question.namespace, resource.namespaced) {
            (Some(namespace), true) => {
                path += &format!("/namespaces/{}", segment(namespace)?);
            }
            (None, true) if question.name.is_some() => return Err(LookupError::NoNamespace),
            (Some(_), false) if question.name.is_none() => return Err(LookupError::ClusterWide),
            // An object in no namespace is the same from everywhere.
            _ => {}
        }
        path += &format!("/{}", segment(&resource.plural)?);
        match &question.name {
            Some(name) => {
                let path = format!("{path}/{}", segment(name)?);
                self.get(&path, name).await
            }
            None => self.list(&path, question).await,
        }
    }

    async fn get(&self, path: &str, name: &str) -> Result<Found, LookupError> {
        let (status, bytes) = self.send(path, self.largest).await?;
        if status == StatusCode::NOT_FOUND && is_about(&bytes, name) {
            return Err(LookupError::NotFound);
        }
        let mut object = read(status, &bytes)?;
        strip(&mut object);
        Ok(Found {
            value: object,
            size: bytes.len(),
        })
    }

    async fn list(&self, path: &str, question: &Question) -> Result<Found, LookupError> {
        let mut items = Vec::new();
        let (mut size, mut next, mut restarted) = (0, String::new(), false);
        let mut version = Value::Null;
        loop {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &self.page.to_string());
            for (name, value) in [
                ("labelSelector", question.labels.as_deref()),
                ("fieldSelector", question.fields.as_deref()),
                ("continue", Some(next.as_str())),
            ] {
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    query.append_pair(name, value);
                }
            }
            let target = format!("{path}?{}", query.finish());
            let (status, bytes) = self.send(&target, self.largest - size).await?;
            // Reading took so long that the server does not remember where it was.
            if status == StatusCode::GONE && !next.is_empty() && !restarted {
                (items, size, next, restarted) = (Vec::new(), 0, String::new(), true);
                continue;
            }
            let mut page = read(status, &bytes)?;
            size += bytes.len();
            if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
                items.extend(more.into_iter().map(|item| whole(item, &question.kind)));
            }
            let metadata = page.get("metadata");
            let told = |field: &str| metadata.and_then(|metadata| metadata.get(field)).cloned();
            version = told("resourceVersion").unwrap_or(version);
            next = match told("continue") {
                Some(Value::String(next)) if !next.is_empty() => next,
                _ => break,
            };
        }
        let list = json!({
            "apiVersion": question.kind.api_version(),
            "kind": format!("{}List", question.kind.kind),
            "metadata": {"resourceVersion": version},
            "items": items,
        });
        Ok(Found { value: list, size })
    }

    async fn resource(&self, kind: &GroupVersionKind) -> Result<Resource, LookupError> {
        if let Some(known) = self.known(kind) {
            return Ok(known);
        }
        let (status, bytes) = self.send(&base(kind)?, self.largest).await?;
        let unserved = || LookupError::transient("the cluster does not serve this kind");
        if status == StatusCode::NOT_FOUND {
            return Err(unserved());
        }
        let list = read(status, &bytes)?;
        let all = list["resources"].as_array().into_iter().flatten();
        let found = all
            .filter(|one| one["kind"] == kind.kind.as_str())
            .find_map(|one| {
                // One with a slash is a part of another, such as a scale.
                let plural = one["name"].as_str().filter(|name| !name.contains('/'))?;
                Some(Resource {
                    plural: plural.into(),
                    namespaced: one["namespaced"] == true,
                })
            });
        let found = found.ok_or_else(unserved)?;
        let mut resources = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        resources.retain(|_, (since, _)| since.elapsed() < DISCOVERED);
        resources.insert(kind.clone(), (Instant::now(), found.clone()));
        Ok(found)
    }

    fn known(&self, kind: &GroupVersionKind) -> Option<Resource> {
        let resources = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (since, known) = resources.get(kind)?;
        (since.elapsed() < DISCOVERED).then(|| known.clone())
    }

    async fn send(&self, target: &str, largest: usize) -> Result<(StatusCode, Bytes), LookupError> {
        let request = Request::get(target).header("accept", "application/json");
        let request = request
            .body(Body::empty())
            .map_err(|error| LookupError::permanent(error.to_string()))?;
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| LookupError::transient(error.to_string()))?;
        let (head, body) = answer.into_parts();
        match Limited::new(body, largest).collect().await {
            Ok(body) => Ok((head.status, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                let most = self.largest;
                let reason = format!("there is more than the {most} bytes that are read");
                Err(LookupError::permanent(reason))
            }
            Err(error) => {
                let reason = format!("the answer broke off: {error}");
                Err(LookupError::transient(reason))
            }
        }
    }
}

fn base(kind: &GroupVersionKind) -> Result<String, LookupError> {
    let version = segment(&kind.version)?;
    match kind.group.as_str() {
        "" => Ok(format!("/api/{version}")),
        group => Ok(format!("/apis/{}/{version}", segment(group)?)),
    }
}

/// A name as one part of a path, which leads nowhere else.
fn segment(name: &str) -> Result<String, LookupError> {
    match name {
        "" | "." | ".." => Err(LookupError::permanent(format!("{name:?} is no name"))),
        name if name.contains(['/', '%', '\\']) => {
            Err(LookupError::permanent(format!("{name:?} is no name")))
        }
        name => Ok(utf8_percent_encode(name, &SEGMENT).to_string()),
    }
}

/// Whether an error names the object that was asked for. Otherwise a 404 means that its kind, or the
/// server of its kind, is missing.
fn is_about(bytes: &[u8], name: &str) -> bool {
    let status: Option<Value> = serde_json::from_slice(bytes).ok();
    status.is_some_and(|status| status["details"]["name"] == name)
}

fn read(status: StatusCode, bytes: &[u8]) -> Result<Value, LookupError> {
    let read: Option<Value> = serde_json::from_slice(bytes).ok();
    if status.is_success() {
        return read.ok_or_else(|| LookupError::transient("the answer is no JSON"));
    }
    let message = read.as_ref().and_then(|status| status["message"].as_str());
    let message = message.map(|message| format!(": {message}"));
    let allow = match status {
        StatusCode::FORBIDDEN => "; give the audit this permission",
        _ => "",
    };
    let message = message.unwrap_or_default();
    Err(LookupError::Unavailable {
        reason: format!("the API server answers {status}{message}{allow}"),
        // The question itself is wrong, such as its selector.
        is_transient: !matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
        ),
    })
}

/// An item of a list as it is when it is read alone: lists of built-in kinds do not say what it is.
fn whole(mut item: Value, kind: &GroupVersionKind) -> Value {
    strip(&mut item);
    if let Some(item) = item.as_object_mut() {
        for (field, text) in [
            ("apiVersion", kind.api_version()),
            ("kind", kind.kind.clone()),
        ] {
            item.entry(field).or_insert_with(|| text.into());
        }
    }
    item
}

/// Who manages which field is long, and nobody judges by it.
fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}
