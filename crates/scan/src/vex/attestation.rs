//! VEX documents as they are attached to images: bare, as the predicate of an in-toto statement, or
//! that in a signed envelope. Whether the signature is good is not judged here.

use super::{Document, VexError};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What in-toto calls a predicate that is a VEX document.
const PREDICATES: [&str; 3] = [
    "https://openvex.dev/ns",
    "https://cyclonedx.org/",
    "https://docs.oasis-open.org/csaf",
];

#[derive(Deserialize)]
struct Envelope<'a> {
    payload: Option<String>,
    #[serde(rename = "predicateType")]
    predicate_type: Option<String>,
    #[serde(borrow)]
    predicate: Option<&'a RawValue>,
}

impl Document {
    /// Reads what is attached to an image; nothing where it is an attestation of something else.
    pub fn attached(text: &[u8]) -> Result<Option<Self>, VexError> {
        let envelope: Envelope = serde_json::from_slice(text)?;
        if let Some(payload) = &envelope.payload {
            let decoded = STANDARD
                .decode(payload)
                .or_else(|_| URL_SAFE.decode(payload));
            let decoded = decoded.map_err(|error| {
                VexError::Unknown(format!(
                    "the payload of its envelope is not base64: {error}"
                ))
            })?;
            return Document::stated(&decoded);
        }
        match envelope.predicate_type {
            Some(_) => Document::stated(text),
            None => Document::parse(text).map(Some),
        }
    }

    /// Reads the predicate of a statement, if that is a VEX document.
    fn stated(text: &[u8]) -> Result<Option<Self>, VexError> {
        let statement: Envelope = serde_json::from_slice(text)?;
        let kind = statement.predicate_type.unwrap_or_default();
        let is_vex = PREDICATES.iter().any(|known| kind.starts_with(known));
        match statement.predicate.filter(|_| is_vex) {
            Some(predicate) => Document::parse(predicate.get().as_bytes()).map(Some),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn openvex() -> Value {
        json!({
            "@context": "https://openvex.dev/ns/v0.2.0", "@id": "x", "author": "a",
            "timestamp": "2024-01-01T00:00:00Z", "version": 1,
            "statements": [{"vulnerability": {"name": "CVE-1"}, "status": "not_affected",
                "products": [{"@id": "pkg:deb/debian/a"}]}],
        })
    }

    fn enveloped(statement: &Value) -> Value {
        let payload = STANDARD.encode(statement.to_string());
        json!({"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []})
    }

    #[test]
    fn a_document_is_found_however_it_is_wrapped() {
        let stated = |kind: &str| {
            json!({"_type": "https://in-toto.io/Statement/v1", "predicateType": kind,
                "subject": [], "predicate": openvex()})
        };
        let vex = stated("https://openvex.dev/ns/v0.2.0");
        let provenance = stated("https://slsa.dev/provenance/v1");
        for (text, expected) in [
            (openvex(), Some(1)),
            (vex.clone(), Some(1)),
            (enveloped(&vex), Some(1)),
            (provenance.clone(), None),
            (enveloped(&provenance), None),
        ] {
            let found = Document::attached(text.to_string().as_bytes()).unwrap();
            assert_eq!(found.map(|document| document.len()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrapped_wrongly_is_an_error() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"payload": "%%"}"#,
            r#"{"payload": "e30x"}"#,
            r#"{"predicateType": "https://openvex.dev/ns", "predicate": 1}"#,
        ] {
            assert!(Document::attached(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
