//! Manifests as text, read into objects. Each document is read by itself, so that a broken one costs
//! no other, and each within limits: whoever wrote it need not mean well. An alias is expanded, but
//! never into more than a document could hold without it.

use muster_scan::output::layout::plain;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The largest file that is read.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;
/// A file with more documents, or a list with more objects, is none that a person wrote.
const MOST: usize = 100_000;
/// The most values in a document, aliases expanded.
const MOST_VALUES: usize = 4_000_000;
/// How deep values may be nested.
const DEEPEST: usize = 64;
/// Files of tools that read the same directories, and are no objects of a cluster.
const NO_OBJECTS: [&str; 2] = ["kustomize.config.k8s.io", "helm.sh"];

/// Where an object was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The file, as it was named; `-` is standard input.
    pub(super) file: Arc<str>,
    /// Which document of it, from 1.
    pub(super) document: usize,
    /// The line in which the document begins, from 1.
    pub(super) line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.file {
            "-" => write!(f, "standard input, line {}", self.line),
            file => write!(f, "{file}:{}", self.line),
        }
    }
}

/// An object, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    pub(super) object: Value,
    pub(super) origin: Origin,
}

/// What came of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Read {
    /// An object.
    Object(Written),
    /// YAML, but no object of Kubernetes.
    Other(Written),
    /// Nothing that can be read; the message names the place.
    Broken(String),
}

/// Reads all documents of a text.
pub(super) fn read(file: &str, text: &str) -> Vec<Read> {
    let file: Arc<str> = file.into();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{')
        && let Some(documents) = json(text)
    {
        let mut read = Vec::new();
        for (number, (line, value)) in documents.into_iter().enumerate() {
            let origin = Origin {
                file: file.clone(),
                document: number + 1,
                line,
            };
            sort(value, &origin, &mut read);
        }
        return read;
    }
    let mut read = Vec::new();
    for (number, part) in parts(text).into_iter().enumerate() {
        let origin = Origin {
            file: file.clone(),
            document: number + 1,
            line: part.begins,
        };
        if number == MOST {
            read.push(broken(&origin, &format!("more than {MOST} documents")));
            break;
        }
        match yaml(part.text) {
            Ok(value) => sort(value, &origin, &mut read),
            Err(error) => {
                let line = error.line.map(|line| part.line + line - 1);
                let at = line.map_or(String::new(), |line| format!("line {line}: "));
                read.push(broken(&origin, &format!("{at}{}", error.message)));
            }
        }
    }
    read
}

fn broken(origin: &Origin, why: &str) -> Read {
    let file = match &*origin.file {
        "-" => "standard input",
        file => file,
    };
    Read::Broken(plain(&format!(
        "{file}, document {}: {why}",
        origin.document
    )))
}

/// The documents of a file of JSON, with their lines; nothing if it is something else.
fn json(text: &str) -> Option<Vec<(usize, Value)>> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut read, mut before, mut line) = (Vec::new(), 0, 1);
    loop {
        let rest = text.get(before..)?;
        let blank = rest.len() - rest.trim_start().len();
        line += lines(&rest[..blank]);
        let Some(value) = documents.next() else {
            return Some(read);
        };
        read.push((line, value.ok()?));
        if read.len() > MOST {
            return None;
        }
        let end = documents.byte_offset();
        line += lines(text.get(before + blank..end)?);
        before = end;
    }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// A document as it stands in its file.
#[derive(Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    /// The line of its first character.
    line: usize,
    /// The line of the first thing in it that is no comment.
    begins: usize,
}

/// Takes a file of YAML apart. A line that begins with `---` ends a document wherever it stands: no
/// text within one may begin a line so (YAML 1.2, 9.1.2).
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut start_line) = (0, 1);
    let mut begins = None;
    let mut at = 0;
    let is_marker = |line: &str, marker: &str| {
        let rest = line.strip_prefix(marker);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let next = at + line.len();
        let bare = line.trim_end_matches(['\n', '\r']);
        let (opens, ends) = (is_marker(bare, "---"), is_marker(bare, "..."));
        if opens || ends {
            if let Some(begins) = begins.take() {
                let line = start_line;
                let text = &text[start..at];
                parts.push(Part { text, line, begins });
            }
            (start, start_line) = if opens {
                (at, number)
            } else {
                (next, number + 1)
            };
        }
        let said = match opens {
            true => bare[3..].trim(),
            false if ends => "",
            false => bare.trim(),
        };
        let is_said = !said.is_empty() && !said.starts_with('#') && !bare.starts_with('%');
        if is_said && begins.is_none() {
            begins = Some(number);
        }
        at = next;
    }
    if let Some(begins) = begins {
        let (text, line) = (&text[start..], start_line);
        parts.push(Part { text, line, begins });
    }
    parts
}

struct Fault {
    /// Within the document, from 1.
    line: Option<usize>,
    message: String,
}

fn yaml(text: &str) -> Result<Value, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 1_000,
            max_aliases: 10_000,
            max_documents: 1,
            max_depth: DEEPEST,
            max_nodes: MOST_VALUES,
            max_events: 2 * MOST_VALUES,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error
            .location()
            .and_then(|at| usize::try_from(at.line()).ok());
        let said = error.to_string();
        let said = said.lines().next().unwrap_or_default();
        // Where it says the line itself, it means that of the document.
        let message = match said.rfind(" at line ") {
            Some(end) if line.is_some() => &said[..end],
            _ => said,
        };
        Fault {
            line: line.filter(|line| *line > 0),
            message: message.to_owned(),
        }
    })
}

/// The one value of a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    yaml(text).map_err(|fault| match fault.line {
        Some(line) => format!("line {line}: {}", fault.message),
        None => fault.message,
    })
}

/// Takes lists apart, and what is no object aside.
fn sort(value: Value, origin: &Origin, into: &mut Vec<Read>) {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if value.is_null() {
        return;
    }
    if !value.is_object() {
        into.push(broken(origin, "is no object: it has no fields"));
        return;
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if (api_version.is_empty() && kind.is_empty()) || NO_OBJECTS.contains(&group) {
        let origin = origin.clone();
        into.push(Read::Other(Written {
            object: value,
            origin,
        }));
        return;
    }
    if api_version.is_empty() || kind.is_empty() {
        let absent = if kind.is_empty() {
            "kind"
        } else {
            "apiVersion"
        };
        into.push(broken(origin, &format!("names no {absent}")));
        return;
    }
    let Some(of) = kind
        .strip_suffix("List")
        .filter(|_| value["items"].is_array())
    else {
        into.push(Read::Object(Written {
            object: value,
            origin: origin.clone(),
        }));
        return;
    };
    let Value::Object(mut list) = value else {
        return;
    };
    let Some(Value::Array(items)) = list.remove("items") else {
        return;
    };
    if items.len() > MOST {
        into.push(broken(
            origin,
            &format!("a list of more than {MOST} objects"),
        ));
        return;
    }
    for mut item in items {
        if let Some(fields) = item.as_object_mut().filter(|_| !of.is_empty()) {
            // The items of a typed list need not say what they are.
            fields
                .entry("apiVersion")
                .or_insert(api_version.as_str().into());
            fields.entry("kind").or_insert(of.into());
        }
        if item["kind"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("List"))
            && item["items"].is_array()
        {
            into.push(broken(origin, "a list within a list"));
            continue;
        }
        sort(item, origin, into);
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
