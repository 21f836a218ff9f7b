//! Request bodies: read up to a limit, decompress, and decode to a tree, whichever of JSON, YAML
//! and protobuf they come in. The limit counts decompressed bytes, and a budget counts what the tree
//! takes while it is read, so that a small body cannot become a large one.

use crate::query::FieldValidation;
use crate::room::Room;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use muster_kind::cost::TooLarge;
use muster_kind::parse::{self, Fields, ParseError, Parsed};
use muster_kind::{Budget, Kind, Object, Status};
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use std::fmt::Display;
use std::io::Read;
use std::time::Duration;

/// The body of a request, whoever sends it.
pub type RequestBody =
    http_body_util::combinators::UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Decodes the protobuf form of a built-in kind, within a budget.
pub type ProtobufDecoder = fn(&[u8], &Budget) -> Result<Value, String>;

/// How many parts of a YAML document its aliases may repeat; kube-apiserver refuses such documents as well.
const MAX_REPLAYED: usize = 100_000;
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
        // Other requests have their turn while a large body is inflated.
        tokio::task::yield_now().await;
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

/// Decodes a body to an object of a kind, with the paths of keys that stood twice. The tree stays within the
/// budget.
pub fn decode(
    bytes: &[u8],
    encoding: Encoding,
    kind: &Kind,
    decoder: ProtobufDecoder,
    budget: &Budget,
) -> Result<Parsed, Status> {
    match encoding {
        Encoding::Json => {
            let parsed = parse::read(bytes, Fields::of(kind), budget);
            parsed.map_err(|error| match json_error(error) {
                error if error.code == 400 => unrecognized(kind, bytes, &error.message),
                error => error,
            })
        }
        Encoding::Yaml => {
            let parsed = yaml(bytes, kind, budget).map_err(|error| match error.code {
                400 => unrecognized(kind, bytes, &error.message),
                _ => error,
            })?;
            Ok(Parsed {
                duplicates: Vec::new(),
                ..parsed
            })
        }
        Encoding::Protobuf => Ok(Parsed {
            object: Object::seal(protobuf(bytes, decoder, budget)?, kind),
            ..Parsed::default()
        }),
    }
}

/// Decodes a body that is an object of no stored kind: options, a review.
pub fn decode_plain(
    bytes: &[u8],
    encoding: Encoding,
    decoder: ProtobufDecoder,
) -> Result<Value, Status> {
    let budget = Budget::default();
    match encoding {
        Encoding::Json => {
            let parsed = parse::read(bytes, Fields::default(), &budget);
            Ok(parsed.map_err(json_error)?.object.tree)
        }
        Encoding::Yaml => {
            let fields = Fields::default();
            let parsed = match json_document(bytes, fields, &budget)? {
                Some(parsed) => parsed,
                None => yaml_document(bytes, fields, &budget)?,
            };
            Ok(parsed.object.tree)
        }
        Encoding::Protobuf => protobuf(bytes, decoder, &budget),
    }
}

/// Reads YAML to an object of a kind; every JSON document is one.
pub fn yaml(bytes: &[u8], kind: &Kind, budget: &Budget) -> Result<Parsed, Status> {
    if let Some(parsed) = json_document(bytes, Fields::of(kind), budget)? {
        return Ok(parsed);
    }
    let fields = Fields {
        opaque: &[],
        computed: &kind.computed,
    };
    let parsed = yaml_document(bytes, fields, budget)?;
    Ok(Parsed {
        object: Object::seal(parsed.object.tree, kind),
        ..parsed
    })
}

/// The document, if it is JSON.
fn json_document(
    bytes: &[u8],
    fields: Fields<'_>,
    budget: &Budget,
) -> Result<Option<Parsed>, Status> {
    match parse::read(bytes, fields, budget) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(ParseError::TooLarge(error)) => Err(too_large(error)),
        Err(ParseError::Json(_)) => {
            budget.reset();
            Ok(None)
        }
    }
}

fn yaml_document(bytes: &[u8], fields: Fields<'_>, budget: &Budget) -> Result<Parsed, Status> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Status::bad_request(format!("the body is not UTF-8: {error}")))?;
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
    };
    let parsed =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            parse::read_from(deserializer, fields, budget)
        });
    parsed.map_err(
        |error| match (budget.exceeded(), error.without_snippet()) {
            (Some(error), _) => too_large(error),
            (None, serde_saphyr::Error::Budget { breach, .. }) if is_size(breach) => {
                Status::too_large(
                    "Request entity too large: the body has too many values for YAML; send it as JSON or split it into several objects",
                )
            }
            _ => Status::bad_request(format!("error converting YAML to JSON: {error}")),
        },
    )
}

/// Whether a limit of the YAML parser is one of size.
fn is_size(breach: &BudgetBreach) -> bool {
    matches!(
        breach,
        BudgetBreach::Events { .. } | BudgetBreach::Nodes { .. } | BudgetBreach::ScalarBytes { .. }
    )
}

fn protobuf(bytes: &[u8], decoder: ProtobufDecoder, budget: &Budget) -> Result<Value, Status> {
    decoder(bytes, budget).map_err(|why| match budget.exceeded() {
        Some(error) => too_large(error),
        None => Status::bad_request(why),
    })
}

/// What a body that would be too large as a tree is answered with.
pub(crate) fn too_large(error: TooLarge) -> Status {
    Status::too_large(format!(
        "Request entity too large: {error}; split it into several objects, or shorten its lists and maps"
    ))
}

/// What a JSON body that cannot be read is answered with.
pub fn json_error(error: ParseError) -> Status {
    match error {
        ParseError::TooLarge(error) => too_large(error),
        ParseError::Json(error) => Status::bad_request(format!(
            "couldn't get version/kind; json parse error: {error}"
        )),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &[u8], budget: &Budget) -> Result<Value, String> {
        budget.text(usize::MAX).map_err(|error| error.to_string())?;
        Ok(Value::Null)
    }

    #[test]
    fn a_body_that_is_a_large_tree_is_refused_in_every_format() {
        let mut kind = Kind::namespaced("example.com", "v1", "Report");
        kind.computed = vec!["status".into()];
        let zeros = "0,".repeat(1_000_000);
        let object = format!("{{\"kind\":\"Report\",\"x\":[{zeros}0]}}");
        let yaml = format!("kind: Report\nx: [{zeros}0]\n");
        let lines = format!("kind: Report\nx:\n{}", "- 0\n".repeat(700_000));
        for (what, text, encoding) in [
            ("JSON", &object, Encoding::Json),
            ("JSON as YAML", &object, Encoding::Yaml),
            ("YAML", &yaml, Encoding::Yaml),
            ("YAML in lines", &lines, Encoding::Yaml),
            ("protobuf", &object, Encoding::Protobuf),
        ] {
            let budget = Budget::default();
            let refused = decode(text.as_bytes(), encoding, &kind, none, &budget).unwrap_err();
            assert_eq!(
                (refused.code, refused.reason),
                (413, "RequestEntityTooLarge"),
                "{what}: {}",
                refused.message
            );
            assert!(refused.message.contains("split it into"), "{what}");
            let refused = decode_plain(text.as_bytes(), encoding, none).unwrap_err();
            assert_eq!(refused.code, 413, "{what}");
        }
        // What is computed is neither built nor counted.
        for (text, encoding) in [
            (object.replace("\"x\"", "\"status\""), Encoding::Json),
            (object.replace("\"x\"", "\"status\""), Encoding::Yaml),
            (
                yaml.replace("x:", "status:").replace(&zeros, "0,"),
                Encoding::Yaml,
            ),
        ] {
            let budget = Budget::new(10_000);
            let parsed = decode(text.as_bytes(), encoding, &kind, none, &budget).unwrap();
            assert_eq!(parsed.object.tree, serde_json::json!({"kind": "Report"}));
            assert_eq!(parsed.skipped, ["status"]);
        }
    }

    #[test]
    fn yaml_that_repeats_itself_without_end_is_a_bad_request() {
        let line = |n: usize| {
            format!(
                "a{n}: &a{n} [{}]\n",
                vec![format!("*a{}", n - 1); 8].join(", ")
            )
        };
        let laughs: String = (1..30).map(line).collect();
        let text = format!("a0: &a0 lol\n{laughs}");
        let kind = Kind::namespaced("example.com", "v1", "Report");
        let budget = Budget::default();
        let refused = decode(text.as_bytes(), Encoding::Yaml, &kind, none, &budget).unwrap_err();
        assert_eq!((refused.code, refused.reason), (400, "BadRequest"));
        assert!(budget.spent() < 16 * 1024 * 1024, "{}", budget.spent());
    }
}
