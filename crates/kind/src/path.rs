//! Paths to fields, as Kubernetes writes them: `.spec.uri` in descriptions and columns,
//! `spec.repositories[0].name` in error causes.

use serde_json::Value;
use std::fmt;

/// A path to one field of an object: names from the root, no indexes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// Parses `.spec.uri` or `spec.uri`. A name that contains dots is written in brackets:
    /// `.metadata.labels['a.b/c']`.
    pub fn parse(text: &str) -> Self {
        let mut names = Vec::new();
        let mut rest = text.trim_start_matches('.');
        while !rest.is_empty() {
            if let Some(quoted) = rest.strip_prefix("['")
                && let Some((name, after)) = quoted.split_once("']")
            {
                names.push(name.to_owned());
                rest = after.trim_start_matches('.');
                continue;
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len()).max(1);
            names.push(rest[..end].to_owned());
            rest = rest[end..].trim_start_matches('.');
        }
        FieldPath(names)
    }

    /// The names from the root.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The value at this path.
    pub fn get<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, name| value.get(name))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
