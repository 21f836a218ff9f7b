//! An object in pieces, for answers that are sent while they are made: slices of its text, and the digests of
//! the opaque fields between them. No piece is a copy, and what several places share is one piece of memory.

use crate::{Body, Digest};
use bytes::Bytes;
use std::sync::Arc;

/// A JSON value that several places of one or more bodies share, with opaque fields of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    /// The text without opaque fields.
    pub text: Bytes,
    /// Where in `text` the bytes of which blob belong, in ascending order.
    pub blobs: Vec<(usize, Digest)>,
}

/// A piece of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Text.
    Text(Bytes),
    /// The bytes of this blob.
    Blob(Digest),
}

#[derive(Debug)]
enum Hole {
    Text(Bytes),
    Blob(Digest),
    Quote(Arc<Quote>),
}

/// The pieces of an object, in order.
#[derive(Debug)]
pub struct Segments {
    text: Bytes,
    at: usize,
    holes: std::vec::IntoIter<(usize, Hole)>,
    due: Option<Segment>,
    quoted: Option<Box<Segments>>,
}

impl Segments {
    /// The pieces of a body at a revision, from a place in its text on.
    pub(crate) fn of(body: &Body, revision: u64, from: usize) -> Self {
        let revision = Hole::Text(revision.to_string().into());
        let blobs = body
            .blobs
            .iter()
            .map(|(at, digest)| (*at, Hole::Blob(*digest)));
        let quotes = body
            .quotes
            .iter()
            .map(|(at, quote)| (*at, Hole::Quote(quote.clone())));
        let mut holes: Vec<(usize, Hole)> = std::iter::once((body.revision_at, revision))
            .chain(blobs)
            .chain(quotes)
            .collect();
        holes.sort_by_key(|(at, _)| *at);
        Segments::new(body.text.clone(), from, holes)
    }

    fn quote(quote: &Quote) -> Self {
        let holes = quote
            .blobs
            .iter()
            .map(|(at, digest)| (*at, Hole::Blob(*digest)));
        Segments::new(quote.text.clone(), 0, holes.collect())
    }

    fn new(text: Bytes, from: usize, holes: Vec<(usize, Hole)>) -> Self {
        Segments {
            text,
            at: from,
            holes: holes.into_iter(),
            due: None,
            quoted: None,
        }
    }

    /// The text up to a place.
    fn text(&mut self, end: usize) -> Segment {
        let from = self.at.min(self.text.len());
        let end = end.clamp(from, self.text.len());
        self.at = end;
        Segment::Text(self.text.slice(from..end))
    }
}

impl Iterator for Segments {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if let Some(due) = self.due.take() {
            return Some(due);
        }
        if let Some(quoted) = &mut self.quoted {
            match quoted.next() {
                Some(segment) => return Some(segment),
                None => self.quoted = None,
            }
        }
        let Some((end, hole)) = self.holes.next() else {
            return (self.at < self.text.len()).then(|| self.text(self.text.len()));
        };
        let text = self.text(end);
        match hole {
            Hole::Text(text) => self.due = Some(Segment::Text(text)),
            Hole::Blob(digest) => self.due = Some(Segment::Blob(digest)),
            Hole::Quote(quote) => self.quoted = Some(Box::new(Segments::quote(&quote))),
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_sent_wherever_it_stands_and_is_never_copied() {
        let digest = Digest::of(b"x");
        let quote = Arc::new(Quote {
            text: Bytes::from_static(b"[{\"a\":}]"),
            blobs: vec![(6, digest)],
        });
        let text = br#"{"metadata":{"resourceVersion":""},"list":[,],"z":}"#;
        let body = Body {
            text: Bytes::from_static(text),
            revision_at: 32,
            blobs: vec![(50, digest)],
            quotes: vec![(43, quote.clone()), (44, quote.clone())],
        };
        let mut sent = Vec::new();
        let mut quoted = 0;
        for segment in body.segments(7) {
            match segment {
                Segment::Text(text) => {
                    quoted += usize::from(text.as_ptr() == quote.text.as_ptr());
                    sent.extend_from_slice(&text);
                }
                Segment::Blob(found) => {
                    assert_eq!(found, digest);
                    sent.extend_from_slice(b"1");
                }
            }
        }
        let whole = r#"{"metadata":{"resourceVersion":"7"},"list":[[{"a":1}],[{"a":1}]],"z":1}"#;
        assert_eq!(String::from_utf8(sent).unwrap(), whole);
        assert_eq!(quoted, 2);
        let mut rendered = bytes::BytesMut::new();
        body.render(7, &mut rendered, |_| Bytes::from_static(b"1"));
        assert_eq!(rendered, whole.as_bytes());
        let outline = body.outline(7);
        assert_eq!(outline["list"], serde_json::json!([null, null]));
        assert_eq!(body.digests().collect::<Vec<_>>(), [digest; 3]);
    }
}
