//! Answers: the body type, JSON answers and errors as `Status`.

use crate::compress;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use muster_kind::Status;
use serde_json::Value;
use tokio::sync::mpsc;

/// Why a body ended early.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;
/// Every answer.
pub type Answer = Response<Body>;

/// A body that is all there.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// An answer with a content type.
pub fn answer(code: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An answer fed by a task, with all its bytes compressed if `gzip`.
pub(crate) fn streamed(
    code: StatusCode,
    content_type: &'static str,
    pieces: mpsc::Receiver<Result<Bytes, BodyError>>,
    gzip: bool,
) -> Answer {
    let mut response = Response::new(channel_body(pieces));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    match gzip {
        true => compress::mark(response),
        false => response,
    }
}

/// A body fed by a task.
pub(crate) fn channel_body(receiver: mpsc::Receiver<Result<Bytes, BodyError>>) -> Body {
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let bytes = receiver.recv().await?;
        Some((bytes.map(Frame::data), receiver))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A JSON answer.
pub fn json(code: StatusCode, value: &Value) -> Answer {
    answer(code, "application/json", value.to_string())
}

/// An error.
pub fn error(status: &Status) -> Answer {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, &status.to_value());
    if let Some(seconds) = status.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// What a path that nothing knows is answered with.
pub fn no_page() -> Answer {
    answer(
        StatusCode::NOT_FOUND,
        "text/plain; charset=utf-8",
        "404 page not found\n",
    )
}

/// The most text of all `Warning` headers of an answer, as in kube-apiserver. Clients refuse larger heads.
const MAX_WARNINGS: usize = 4 * 1024;

/// Adds `Warning` headers, which kubectl shows to its user.
pub fn with_warnings(mut response: Answer, warnings: &[String]) -> Answer {
    let mut length = 0;
    for warning in warnings {
        length += warning.len();
        if length > MAX_WARNINGS {
            break;
        }
        let text: String = warning
            .chars()
            .filter(|c| !c.is_control())
            .flat_map(|c| match c {
                '"' | '\\' => vec!['\\', c],
                c => vec![c],
            })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
