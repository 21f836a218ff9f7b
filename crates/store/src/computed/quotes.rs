//! The VulnerabilityReports that workloads' reports quote: their text without findings, once for each image,
//! within a budget. Findings are blobs, which are read while an answer is sent.

use bytes::{BufMut, BytesMut};
use muster_apiserver::store::{Key, StoreError};
use muster_kind::{Body, Digest, Quote};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// The most bytes of text that one lookup quotes. A VulnerabilityReport beyond it is named and not quoted.
pub(crate) const MAX_QUOTED_BYTES: usize = 32 * 1024 * 1024;

/// The quotes of a lookup, by link.
#[derive(Debug)]
pub(crate) struct Quotes {
    links: HashMap<String, Growing>,
    left: usize,
    /// Something was left out.
    exceeded: bool,
}

#[derive(Debug, Default)]
struct Growing {
    text: BytesMut,
    blobs: Vec<(usize, Digest)>,
}

impl Default for Quotes {
    fn default() -> Self {
        Quotes::new(MAX_QUOTED_BYTES)
    }
}

impl Quotes {
    pub(crate) fn new(budget: usize) -> Self {
        Quotes {
            links: HashMap::new(),
            left: budget,
            exceeded: false,
        }
    }

    /// Whether the budget was too small.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Adds a report of a link; `body` is not read when the budget is spent.
    pub(crate) fn add(
        &mut self,
        link: &str,
        key: &Key,
        body: impl FnOnce() -> Result<Body, StoreError>,
    ) -> Result<(), StoreError> {
        let quote = self.links.entry(link.to_owned()).or_default();
        let separator = if quote.text.is_empty() { '[' } else { ',' };
        let (namespace, name) = (json!(key.namespace), json!(key.name));
        let head = format!("{separator}{{\"namespace\":{namespace},\"name\":{name}");
        quote.text.put_slice(head.as_bytes());
        if self.left > 0 {
            let body = body()?;
            match self.left.checked_sub(body.text.len()) {
                Some(left) => {
                    self.left = left;
                    for field in ["imageMetadata", "report"] {
                        body.quote(field, &mut quote.text, &mut quote.blobs);
                    }
                }
                None => self.left = 0,
            }
        }
        self.exceeded |= self.left == 0;
        quote.text.put_u8(b'}');
        Ok(())
    }

    /// The finished quotes.
    pub(crate) fn finish(self) -> HashMap<String, Arc<Quote>> {
        let quote = |mut growing: Growing| {
            growing.text.put_u8(b']');
            Arc::new(Quote {
                text: growing.text.freeze(),
                blobs: growing.blobs,
            })
        };
        let links = self.links.into_iter();
        links
            .map(|(link, growing)| (link, quote(growing)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::FieldPath;
    use serde_json::Value;

    #[test]
    fn beyond_its_budget_a_report_is_named_and_not_read() {
        let tree = json!({
            "metadata": {"name": "x"}, "imageMetadata": {"tag": "1"},
            "report": {"results": Digest([1; 32]).to_string()},
        });
        let body = Body::encode(&tree, &[FieldPath::parse(".report.results")]);
        let mut quotes = Quotes::new(2 * body.text.len() + 1);
        let mut read = 0;
        for name in ["a", "b", "c", "d"] {
            let key = Key {
                namespace: "n".into(),
                name: name.into(),
            };
            let body = || {
                read += 1;
                Ok(body.clone())
            };
            quotes.add("link", &key, body).unwrap();
            assert_eq!(quotes.exceeded(), matches!(name, "c" | "d"), "{name}");
        }
        assert_eq!(read, 3);
        let quote = quotes.finish().remove("link").unwrap();
        assert_eq!(quote.blobs.len(), 2);
        let text = String::from_utf8(quote.text.to_vec()).unwrap();
        let list: Value =
            serde_json::from_str(&text.replace("\"results\":", "\"results\":0")).unwrap();
        let quoted = json!({"namespace": "n", "name": "b", "imageMetadata": {"tag": "1"}, "report": {"results": 0}});
        assert_eq!(list[1], quoted);
        assert_eq!(list[3], json!({"namespace": "n", "name": "d"}));
    }
}
