//! A registry that can be read: the part of the OCI distribution API that pulls and lists, as a function
//! of a question. Nothing can be pushed, and what does not exist is said to be unknown in the API's own
//! words.

use crate::image::{Blob, Image};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, LINK};
use http::{Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";

/// What a path below `/v2/` means.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Root,
    Catalog,
    Tags(&'a str),
    Manifest(&'a str, &'a str),
    Blob(&'a str, &'a str),
}

impl<'a> Place<'a> {
    fn parse(path: &'a str) -> Option<Place<'a>> {
        let rest = path.strip_prefix("/v2/")?;
        if rest.is_empty() {
            return Some(Place::Root);
        }
        if rest == "_catalog" {
            return Some(Place::Catalog);
        }
        if let Some(name) = rest.strip_suffix("/tags/list") {
            return Some(Place::Tags(name));
        }
        if let Some((name, reference)) = rest.rsplit_once("/manifests/") {
            return Some(Place::Manifest(name, reference));
        }
        let (name, digest) = rest.rsplit_once("/blobs/")?;
        Some(Place::Blob(name, digest))
    }
}

/// The answer to a question; nothing if it is not for a registry.
pub fn answer(images: &[Image], method: &Method, uri: &Uri) -> Option<Response<Bytes>> {
    if !uri.path().starts_with("/v2/") {
        return None;
    }
    if method != Method::GET && method != Method::HEAD {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return Some(refusal(status, "UNSUPPORTED", "this registry is only read"));
    }
    let unknown = |code: &str| refusal(StatusCode::NOT_FOUND, code, "there is no such thing here");
    let named = |name: &str| {
        let images: Vec<&Image> = images.iter().filter(|one| one.repository == name).collect();
        (!images.is_empty()).then_some(images)
    };
    let answered = match Place::parse(uri.path()) {
        None => unknown("NOT_FOUND"),
        Some(Place::Root) => listed(&json!({}), None),
        Some(Place::Catalog) => {
            let names = images.iter().map(|image| image.repository).collect();
            let (names, next) = page(&names, uri);
            listed(&json!({"repositories": names}), next)
        }
        Some(Place::Tags(name)) => match named(name) {
            None => unknown("NAME_UNKNOWN"),
            Some(images) => {
                let tags = images.iter().map(|image| image.tag).collect();
                let (tags, next) = page(&tags, uri);
                listed(&json!({"name": name, "tags": tags}), next)
            }
        },
        Some(Place::Manifest(name, reference)) => named(name)
            .ok_or("NAME_UNKNOWN")
            .and_then(|images| {
                let mut found = images.iter().filter_map(|image| image.manifest(reference));
                found.next().ok_or("MANIFEST_UNKNOWN")
            })
            .map_or_else(unknown, |blob| content(blob, blob.media_type)),
        Some(Place::Blob(name, digest)) => named(name)
            .ok_or("NAME_UNKNOWN")
            .and_then(|images| {
                let mut found = images.iter().filter_map(|image| image.blob(digest));
                found.next().ok_or("BLOB_UNKNOWN")
            })
            .map_or_else(unknown, |blob| content(blob, OCTETS)),
    };
    Some(answered)
}

/// The names that are asked for, and where the next are, if there are more: `n` at most, after `last`.
fn page<'a>(names: &BTreeSet<&'a str>, uri: &Uri) -> (Vec<&'a str>, Option<String>) {
    let (mut most, mut last) = (usize::MAX, String::new());
    let query = uri.query().unwrap_or_default();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "n" => most = value.parse().unwrap_or(most),
            "last" => last = value.into_owned(),
            _ => {}
        }
    }
    let mut rest = names.iter().copied().filter(|name| *name > last.as_str());
    let names: Vec<&str> = rest.by_ref().take(most).collect();
    let more = rest.next().is_some();
    let next = names.last().filter(|_| more).map(|last| {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("n", &most.to_string())
            .append_pair("last", last)
            .finish();
        format!("<{}?{query}>; rel=\"next\"", uri.path())
    });
    (names, next)
}

fn listed(value: &Value, next: Option<String>) -> Response<Bytes> {
    let mut answer = respond(StatusCode::OK, JSON, value.to_string().into());
    if let Some(next) = next.and_then(|next| HeaderValue::try_from(next).ok()) {
        answer.headers_mut().insert(LINK, next);
    }
    answer
}

fn content(blob: &Blob, media_type: &'static str) -> Response<Bytes> {
    let mut answer = respond(StatusCode::OK, media_type, blob.bytes.clone());
    if let Ok(digest) = HeaderValue::try_from(&blob.digest) {
        answer.headers_mut().insert(DIGEST, digest);
    }
    answer
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let body = json!({"errors": [{"code": code, "message": message}]});
    respond(status, JSON, body.to_string().into())
}

/// An answer of any kind.
pub(crate) fn respond(
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
) -> Response<Bytes> {
    let length = body.len();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(VERSION, HeaderValue::from_static("registry/2.0"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_what_the_distribution_api_says() {
        for (path, expected) in [
            ("/v2/", Some(Place::Root)),
            ("/v2/_catalog", Some(Place::Catalog)),
            ("/v2/a/b/tags/list", Some(Place::Tags("a/b"))),
            ("/v2/a/b/manifests/1", Some(Place::Manifest("a/b", "1"))),
            ("/v2/a/blobs/sha256:0", Some(Place::Blob("a", "sha256:0"))),
            ("/v2/a/referrers/sha256:0", None),
            ("/v1/", None),
        ] {
            assert_eq!(Place::parse(path), expected, "{path}");
        }
    }

    #[test]
    fn a_long_list_comes_in_pages() {
        let names = BTreeSet::from(["a", "b", "c"]);
        let next = |after: &str| Some(format!("</v2/_catalog?n=2&last={after}>; rel=\"next\""));
        for (query, expected, link) in [
            ("", vec!["a", "b", "c"], None),
            ("?n=2", vec!["a", "b"], next("b")),
            ("?n=2&last=b", vec!["c"], None),
            ("?n=x", vec!["a", "b", "c"], None),
            ("?n=0", vec![], None),
        ] {
            let uri: Uri = format!("/v2/_catalog{query}").parse().expect("an address");
            assert_eq!(page(&names, &uri), (expected, link), "{query}");
        }
    }
}
