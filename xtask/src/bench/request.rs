//! The requests that benches write with.

use anyhow::Result;
use http::Method;
use muster_testkit::http::Request;
use serde_json::Value;

/// Creates an object.
pub(super) fn post(target: String, object: &Value) -> Result<Request> {
    Request::new(Method::POST, target).body("application/json", object.to_string())
}

/// Changes a part of an object.
pub(super) fn merge(target: String, changes: &Value) -> Result<Request> {
    Request::new(Method::PATCH, target).body("application/merge-patch+json", changes.to_string())
}
