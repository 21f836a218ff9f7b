//! Request bodies: read up to a limit, decompress, and decode to a tree, whichever of JSON, YAML
//! and protobuf they come in. The limit counts decompressed bytes, so that a small body cannot
//! become a large one.

use crate::query::FieldValidation;
use crate::room::Room;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use muster_kind::parse::{self, Parsed};
use muster_kind::{Kind, Object, Status};
use serde_json::Value;
use std::fmt::Display;
use std::io::Read;
use std::time::Duration;

/// The body of a request, whoever sends it.
pub type RequestBody =
    http_body_util::combinators::UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Decodes the protobuf form of a built-in kind.
pub type ProtobufDecoder = fn(&[u8]) -> Result<Value, String>;

/// How long a client may pause in the middle of a body.
const PAUSE: Duration = Duration::from_secs(30);
/// How long all of a body may take: room is not held for clients that trickle.
const WHOLE: Duration = Duration::from_secs(120);

/// Reads a whole body of at most `limit` bytes, as far as there is room.
pub(crate) async fn read(
    mut body: RequestBody,
    headers: &HeaderMap,
    limit: usize,
    room: &Room,
) -> Result<Bytes, Status> {
    let too_large = || Status::too_large(format!("Request entity too large: limit is {limit}"));
    let failed =
        |error: &dyn Display| Status::bad_request(format!("reading the request body: {error}"));
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut read = room.start(declared).await?;
    let end = tokio::time::Instant::now() + WHOLE;
    loop {
        let until = end.min(tokio::time::Instant::now() + PAUSE);
        let frame = tokio::time::timeout_at(until, body.frame()).await;
        let Some(frame) = frame.map_err(|_| failed(&"the client takes too long"))? else {
            break;
        };
        if let Ok(data) = frame.map_err(|error| failed(&error))?.into_data() {
            if read.len() + data.len() > limit {
                return Err(too_large());
            }
            read.push(&data)?;
        }
    }
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_none_or(|encoding| encoding != "gzip") {
        return Ok(read.finish());
    }
    let mut plain = room.start(None).await?;
    let mut reader = flate2::read::MultiGzDecoder::new(read.as_slice());
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let size = reader
            .read(&mut chunk)
            .map_err(|error| Status::bad_request(format!("reading the gzip body: {error}")))?;
        if size == 0 {
            return Ok(plain.finish());
        }
        if plain.len() + size > limit {
            return Err(too_large());
        }
        plain.push(&chunk[..size])?;
    }
}

/// The encodings bodies come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// The media type of a request without its parameters.
pub fn media_type(headers: &HeaderMap) -> String {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase())
        .unwrap_or_default()
}

/// The encoding a request's body is in.
pub fn encoding(headers: &HeaderMap) -> Result<Encoding, Status> {
    match media_type(headers).as_str() {
        "" | "application/json" | "*/*" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Decodes a body to an object of a kind, with the paths of keys that stood twice.
pub fn decode(
    bytes: &[u8],
    encoding: Encoding,
    kind: &Kind,
    protobuf: ProtobufDecoder,
) -> Result<Parsed, Status> {
    match encoding {
        Encoding::Json => {
            let parsed = parse::parse(bytes, &kind.opaque);
            parsed.map_err(|error| unrecognized(kind, bytes, &json_error(&error).message))
        }
        Encoding::Yaml => {
            let tree = yaml(bytes).map_err(|status| unrecognized(kind, bytes, &status.message))?;
            Ok(Parsed {
                object: Object::seal(tree, kind),
                duplicates: Vec::new(),
            })
        }
        Encoding::Protobuf => {
            let tree = protobuf(bytes).map_err(Status::bad_request)?;
            Ok(Parsed {
                object: Object::seal(tree, kind),
                duplicates: Vec::new(),
            })
        }
    }
}

/// Reads YAML; every JSON document is one.
pub fn yaml(bytes: &[u8]) -> Result<Value, Status> {
    if let Ok(parsed) = parse::parse(bytes, &[]) {
        return Ok(parsed.object.tree);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Status::bad_request(format!("the body is not UTF-8: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))
}

/// What a JSON body that cannot be read is answered with.
pub fn json_error(error: &serde_json::Error) -> Status {
    Status::bad_request(format!(
        "couldn't get version/kind; json parse error: {error}"
    ))
}

/// What a body that is no object of the kind is answered with; its start is shown.
pub fn unrecognized(kind: &Kind, bytes: &[u8], why: &str) -> Status {
    const SHOWN: usize = 30;
    let start = &bytes[..bytes.len().min(SHOWN)];
    let dots = if bytes.len() > SHOWN { " ..." } else { "" };
    let shown = match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(start)),
        Some(_) => {
            let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{dots}")
        }
    };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({shown})",
        kind.kind
    ))
}

/// Turns unknown and duplicate fields into warnings or an error.
pub fn judge(
    validation: FieldValidation,
    duplicates: &[String],
    unknown: &[String],
) -> Result<Vec<String>, Status> {
    let lines: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .chain(
            duplicates
                .iter()
                .map(|path| format!("duplicate field {path:?}")),
        )
        .collect();
    match validation {
        _ if lines.is_empty() => Ok(Vec::new()),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(lines),
        FieldValidation::Strict => Err(Status::bad_request(format!(
            "strict decoding error: {}",
            lines.join(", ")
        ))),
    }
}
