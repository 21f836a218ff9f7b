//! Answers that do not depend on stored objects: health, version, metrics, discovery, OpenAPI and
//! reviews.

use crate::body::{self, RequestBody};
use crate::identity::Identity;
use crate::query::Query;
use crate::request::ResourcePath;
use crate::respond::{self, Answer};
use crate::server::Server;
use crate::{discovery, openapi, reviews, swagger};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use muster_kind::{Digest, Status};
use serde_json::{Value, json};
use std::sync::Arc;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a path that names no resource.
pub(crate) async fn answer(
    server: &Arc<Server>,
    parts: &Parts,
    query: &Query,
) -> Result<Answer, Status> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Status::method_not_allowed());
    }
    let path = parts.uri.path().trim_end_matches('/');
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(health(server, &segments, query)),
        ["version"] => Ok(respond::json(StatusCode::OK, &server.version)),
        ["metrics"] => Ok(respond::answer(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            server.metrics.text(server.counters.as_deref()).await,
        )),
        [""] => Ok(roots(server)),
        ["api"] => discover(
            parts,
            || discovery::aggregated(&server.catalog, true),
            || discovery::core_versions(host(parts)),
        ),
        ["apis"] => discover(
            parts,
            || discovery::aggregated(&server.catalog, false),
            || discovery::group_list(&server.catalog),
        ),
        ["api", version] => found(discovery::resources(&server.catalog, "", version)),
        ["apis", group] => found(discovery::group(&server.catalog, group)),
        ["apis", group, version] => found(discovery::resources(&server.catalog, group, version)),
        ["openapi", "v2"] => Ok(swagger_document(server, parts)),
        ["openapi", "v3"] => Ok(cached(parts, &openapi::index(&server.catalog))),
        ["openapi", "v3", rest @ ..] => {
            let document = openapi::document(&server.catalog, &rest.join("/"));
            Ok(document.map_or_else(respond::no_page, |document| cached(parts, &document)))
        }
        ["api", ..] => Err(Status::no_such_path()),
        _ => Ok(respond::no_page()),
    }
}

fn found(value: Option<Value>) -> Result<Answer, Status> {
    Ok(value.map_or_else(respond::no_page, |value| {
        respond::json(StatusCode::OK, &value)
    }))
}

fn host(parts: &Parts) -> &str {
    let header = parts
        .headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok());
    header
        .or_else(|| parts.uri.authority().map(|a| a.as_str()))
        .unwrap_or_default()
}

fn roots(server: &Server) -> Answer {
    let mut paths = vec!["/api".to_owned(), "/api/v1".into(), "/apis".into()];
    for (group, versions) in discovery::groups(&server.catalog) {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.extend(
                versions
                    .iter()
                    .map(|version| format!("/apis/{group}/{version}")),
            );
        }
    }
    paths.extend(
        [
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        .map(Into::into),
    );
    paths.sort();
    respond::json(StatusCode::OK, &json!({"paths": paths}))
}

fn swagger_document(server: &Server, parts: &Parts) -> Answer {
    let accept = parts.headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or("");
    match accept.contains("proto-openapi.spec.v2") {
        true => {
            let document = swagger::encoded(&server.catalog);
            respond::answer(StatusCode::OK, swagger::PROTOBUF, document)
        }
        false => cached(parts, &swagger::document(&server.catalog)),
    }
}

fn discover(
    parts: &Parts,
    aggregated: impl Fn() -> Value,
    plain: impl Fn() -> Value,
) -> Result<Answer, Status> {
    let accept = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    // The client lists what it takes in order of preference; v2 is what we speak.
    let wants = accept.split(',').any(|range| {
        range.contains("g=apidiscovery.k8s.io")
            && range.contains("v=v2")
            && !range.contains("v=v2beta1")
            && range.trim().starts_with("application/json")
    });
    if !wants {
        return Ok(respond::json(StatusCode::OK, &plain()));
    }
    let mut response = cached(parts, &aggregated());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// An answer with an entity tag, or the news that there is none.
fn cached(parts: &Parts, value: &Value) -> Answer {
    let text = value.to_string();
    let tag = format!("\"{}\"", &Digest::of(text.as_bytes()).to_string()[7..]);
    let known = parts
        .headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|v| *v == tag);
    let mut response = if known {
        respond::answer(StatusCode::NOT_MODIFIED, "application/json", "")
    } else {
        respond::answer(StatusCode::OK, "application/json", text)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn health(server: &Server, segments: &[&str], query: &Query) -> Answer {
    let mut checks = vec![("ping", true)];
    if segments[0] == "readyz" {
        let others = server.checks.iter();
        checks.extend(others.map(|check| (check.name, (check.is_fine)())));
        checks.push(("shutdown", !server.is_stopping()));
    } else {
        checks.push(("shutdown", true));
    }
    let chosen: Vec<(&str, bool)> = match segments.get(1) {
        Some(name) => checks
            .into_iter()
            .filter(|(check, _)| check == name)
            .collect(),
        None => checks
            .into_iter()
            .filter(|(check, _)| {
                !query
                    .all("exclude")
                    .iter()
                    .any(|excluded| excluded == check)
            })
            .collect(),
    };
    if chosen.is_empty() && segments.len() > 1 {
        return respond::no_page();
    }
    let fine = chosen.iter().all(|(_, fine)| *fine);
    let code = if fine {
        StatusCode::OK
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let mut text = String::new();
    if query.has("verbose") || !fine {
        for (check, fine) in chosen {
            text.push_str(&if fine {
                format!("[+]{check} ok\n")
            } else {
                format!("[-]{check} failed\n")
            });
        }
        let word = if fine { "passed" } else { "failed" };
        text.push_str(&format!("{} check {word}\n", segments[0]));
    } else {
        text.push_str("ok");
    }
    respond::answer(code, "text/plain; charset=utf-8", text)
}

/// A review about to be answered.
pub(crate) struct Pending<'a> {
    server: &'a Arc<Server>,
    parts: &'a Parts,
    kind: &'static str,
    who: &'a Identity,
}

/// The review a path asks for, if it does.
pub(crate) fn review<'a>(
    server: &'a Arc<Server>,
    parts: &'a Parts,
    path: &ResourcePath,
    who: &'a Identity,
) -> Option<Pending<'a>> {
    let (_, _, kind, _) = discovery::REVIEWS
        .into_iter()
        .find(|(group, plural, ..)| *group == path.group && *plural == path.resource)?;
    (path.version == "v1").then_some(Pending {
        server,
        parts,
        kind,
        who,
    })
}

impl Pending<'_> {
    /// Reads the question and answers it.
    pub(crate) async fn answer(self, body: RequestBody) -> Result<Answer, Status> {
        if self.parts.method != Method::POST {
            return Err(Status::method_not_allowed());
        }
        let headers = &self.parts.headers;
        let bytes = body::read(
            body,
            headers,
            muster_kind::kind::SIZE_LIMIT,
            &self.server.room,
        )
        .await?;
        let encoding = body::encoding(headers)?;
        let review = body::decode_plain(&bytes, encoding, self.server.protobuf)?;
        if !review.is_object() {
            return Err(Status::bad_request("the review is not an object"));
        }
        let answer = reviews::answer(self.server, self.kind, self.who, review).await?;
        Ok(respond::json(StatusCode::CREATED, &answer))
    }
}
