//! What a registry answers: the head with its promises, a body within limits, and refusals as our
//! errors with the registry's own words.

use crate::error::Error;
use crate::retry::retry_after;
use crate::traffic::Place;
use crate::transport::fault;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use reqwest::{Response, Url};
use serde::Deserialize;
use std::time::SystemTime;

/// How much of a refusal is read.
const REFUSAL: usize = 64 * 1024;
/// How much of the registry's words goes into a message.
const WORDS: usize = 300;

/// An answer whose status is fine; its body is still to come.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) response: Response,
    /// The place at the host, kept until the body is read.
    pub(crate) place: Place,
    /// Whether a mirror answered.
    pub(crate) mirrored: bool,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Where it came from, after redirects.
    pub(crate) url: Url,
    pub(crate) mirrored: bool,
}

impl Whole {
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type without its parameters.
    pub(crate) fn media_type(&self) -> Option<&str> {
        let value = self.header(&CONTENT_TYPE)?;
        Some(value.split(';').next().unwrap_or(value).trim())
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn body(
    attempt: &str,
    mut response: Response,
    limit: usize,
) -> Result<Bytes, Error> {
    let over = || Error::too_large(attempt, format!("the answer has more than {limit} bytes"));
    // A HEAD's length is that of a body which does not come.
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(over());
    }
    let mut whole = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| fault(attempt, error))?
    {
        if whole.len() + chunk.len() > limit {
            return Err(over());
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// A refusal as our error.
pub(crate) async fn refusal(attempt: &str, login: &str, response: Response) -> Error {
    let status = response.status();
    let pause = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| retry_after(value, SystemTime::now()));
    let body = body(attempt, response, REFUSAL).await.unwrap_or_default();
    let reason = words(status, &body);
    let attempt = attempt.to_string();
    match status.as_u16() {
        401 => Error::Unauthorized {
            attempt,
            reason: format!("{reason} ({login})"),
        },
        403 => Error::Denied {
            attempt,
            reason: format!("{reason} ({login})"),
        },
        404 | 410 => Error::NotFound { attempt, reason },
        405 | 501 => Error::Unsupported { attempt, reason },
        429 => Error::RateLimited {
            attempt,
            reason,
            retry_after: pause,
        },
        503 if pause.is_some() => Error::RateLimited {
            attempt,
            reason,
            retry_after: pause,
        },
        408 | 425 | 500..=599 => Error::Unavailable { attempt, reason },
        _ => Error::Malformed { attempt, reason },
    }
}

#[derive(Deserialize)]
struct Envelope {
    errors: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// The registry's words: its first error if it speaks the protocol, and the status.
fn words(status: StatusCode, body: &[u8]) -> String {
    let said = serde_json::from_slice::<Envelope>(body).ok();
    let said = said.and_then(|envelope| envelope.errors.into_iter().next());
    let text = match said {
        Some(said) => format!("{status}: {} {}", said.code, said.message),
        None => status.to_string(),
    };
    // The text goes to logs and terminals.
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable
        .take(WORDS)
        .collect::<String>()
        .trim_end()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_registry_are_kept_short_and_printable() {
        let said = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"a\u001b[31m\nb"}]}"#;
        let text = words(StatusCode::NOT_FOUND, said);
        assert_eq!(text, "404 Not Found: MANIFEST_UNKNOWN a [31m b");
        let long = format!(r#"{{"errors":[{{"message":"{}"}}]}}"#, "x".repeat(5000));
        assert_eq!(words(StatusCode::NOT_FOUND, long.as_bytes()).len(), WORDS);
        for other in ["", "<html>", r#"{"errors":[]}"#, r#"{"errors":"x"}"#] {
            assert_eq!(
                words(StatusCode::BAD_GATEWAY, other.as_bytes()),
                "502 Bad Gateway"
            );
        }
    }
}
