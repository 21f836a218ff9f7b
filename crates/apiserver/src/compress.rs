//! Large answers are compressed for whoever takes gzip; small ones are not worth it, and watches
//! must not wait for a compressor to fill up.

use crate::respond::{self, Answer};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body;
use http_body_util::BodyExt;
use muster_kind::Status;
use std::io::Write;

/// Answers below this go as they are, as with kube-apiserver.
const LEAST: u64 = 128 * 1024;

/// Whether a client takes gzip.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let ranges = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

/// Compresses an answer that is all there, if it is large.
pub(crate) async fn whole(response: Answer) -> Answer {
    let length = response.body().size_hint().exact();
    if length.is_none_or(|length| length < LEAST) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let packed = match body.collect().await {
        Ok(body) => {
            let bytes = body.to_bytes();
            tokio::task::spawn_blocking(move || {
                let mut packer = Packer::default();
                [packer.push(&bytes), packer.finish()].concat()
            })
            .await
        }
        Err(error) => return respond::error(&Status::internal(error)),
    };
    match packed {
        Ok(packed) => mark(Answer::from_parts(parts, respond::full(packed))),
        Err(error) => respond::error(&Status::internal(error)),
    }
}

/// Says that an answer is compressed.
pub(crate) fn mark(mut response: Answer) -> Answer {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// Compresses a stream piece by piece.
pub(crate) struct Packer(GzEncoder<Vec<u8>>);

impl Default for Packer {
    fn default() -> Self {
        Packer(GzEncoder::new(Vec::new(), Compression::fast()))
    }
}

impl Packer {
    /// Takes a piece; gives what is ready to go, which may be nothing.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Bytes {
        // Writing into memory has no way to fail.
        let _ = self.0.write_all(bytes);
        std::mem::take(self.0.get_mut()).into()
    }

    /// Gives the rest.
    pub(crate) fn finish(self) -> Bytes {
        self.0.finish().unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn gzip_is_taken_only_from_those_who_say_so() {
        for (accept, taken) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::ACCEPT_ENCODING,
                HeaderValue::from_str(accept).unwrap(),
            );
            assert_eq!(is_accepted(&headers), taken, "{accept}");
        }
    }

    #[test]
    fn pieces_together_are_one_stream() {
        let mut packer = Packer::default();
        let mut packed = Vec::new();
        for piece in [&b"one "[..], &[b'x'; 100_000], b" two"] {
            packed.extend(packer.push(piece));
        }
        packed.extend(packer.finish());
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain.len(), 100_008);
        assert!(plain.starts_with(b"one x") && plain.ends_with(b"x two"));
    }
}
