//! Takes from an answer what no two servers can agree on: identifiers, times, revisions. What they
//! must agree on stays visible: equal identifiers get equal names, so that a write that should
//! have changed nothing, or an object that should be the same one, still shows.

use super::request::Answer;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9]+[smhd]$"));
/// Revisions inside messages: "Too large resource version: 9, current: 5" and the like.
static REVISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(current: |ResourceVersion in record \(|too old resource version: [0-9]+ \()[0-9]+")
});
/// A patch that leads to a bad object is answered with the whole object, fields in no promised
/// order, before the fault itself.
static PATCHED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?s)Invalid value: "\{\\"apiVersion.*\}": "#));

/// How many characters a server appends to the start of a generated name.
const RANDOM: usize = 5;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// What has been seen in a case, in the order of first appearance.
#[derive(Default)]
pub(super) struct Normaliser {
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<(String, String), String>,
    generated: BTreeMap<String, String>,
    collection: String,
}

impl Normaliser {
    /// Normalises the next answer of the case.
    pub(super) fn answer(&mut self, answer: &mut Answer) {
        self.collection.clone_from(&answer.collection);
        // A refused object has no metadata to learn its generated name from, only details.
        let refused = answer.body.pointer("/details/name").and_then(Value::as_str);
        if let (Some(base), Some(name)) = (&answer.generate_name, refused) {
            self.generated_name(base, name);
        }
        self.value(&mut answer.body, false);
        faults(&mut answer.body);
        for event in answer.events.iter_mut().flatten() {
            let bookmark = event["type"] == "BOOKMARK";
            self.value(event, bookmark);
        }
        for value in answer.headers.values_mut().flatten() {
            *value = self.text(value);
        }
        // Servers send warnings in no promised order.
        if let Some(warnings) = answer.headers.get_mut("warning") {
            warnings.sort();
        }
    }

    fn value(&mut self, value: &mut Value, bookmark: bool) {
        match value {
            Value::Object(object) => {
                let list = bookmark || is_list(object);
                if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                    self.metadata(metadata, list);
                }
                if let Some(Value::Array(cells)) = object.get_mut("cells") {
                    cells.iter_mut().for_each(age);
                }
                // Only the words: names, types, formats and priorities of columns are compared.
                if let Some(Value::Array(columns)) = object.get_mut("columnDefinitions") {
                    for column in columns {
                        if let Some(Value::String(words)) = column.get_mut("description") {
                            *words = "<description>".into();
                        }
                    }
                }
                // Keys too: managed fields name the items of a list by their identifiers.
                *object = std::mem::take(object)
                    .into_iter()
                    .map(|(key, mut field)| {
                        self.value(&mut field, bookmark);
                        (self.text(&key), field)
                    })
                    .collect();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, bookmark)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>, list: bool) {
        for name in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(Value::String(time)) = metadata.get_mut(name) {
                *time = "<time>".into();
            }
        }
        if let Some(Value::String(token)) = metadata.get_mut("continue")
            && !token.is_empty()
        {
            *token = "<continue>".into();
        }
        if let Some(Value::String(revision)) = metadata.get_mut("resourceVersion") {
            *revision = self.revision(revision, list);
        }
        let base = metadata
            .get("generateName")
            .and_then(Value::as_str)
            .map(str::to_string);
        if let (Some(base), Some(Value::String(name))) = (base, metadata.get("name")) {
            self.generated_name(&base, name);
        }
        if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            managers(entries);
        }
    }

    /// Remembers a generated name, in which only the length of the random part matters.
    fn generated_name(&mut self, base: &str, name: &str) {
        let kept = name.len().saturating_sub(RANDOM);
        if kept > 0 && name.is_char_boundary(kept) && base.starts_with(&name[..kept]) {
            self.generated
                .insert(name.into(), format!("{}<random>", &name[..kept]));
        }
    }

    /// An object's revision gets a name; a list's is the whole store's, which other cases move.
    fn revision(&mut self, revision: &str, list: bool) -> String {
        if revision.is_empty() || revision.starts_with('<') {
            return revision.into();
        }
        if list {
            return "<list revision>".into();
        }
        let next = format!("<revision {}>", self.revisions.len() + 1);
        let key = (self.collection.clone(), revision.to_string());
        self.revisions.entry(key).or_insert(next).clone()
    }

    fn text(&mut self, text: &str) -> String {
        let text = UID.replace_all(text, |found: &Captures<'_>| {
            let next = format!("<uid {}>", self.uids.len() + 1);
            self.uids
                .entry(found[0].to_string())
                .or_insert(next)
                .clone()
        });
        let text = REVISION.replace_all(&text, "${1}<revision>");
        let text = PATCHED.replace(&text, "Invalid value: <object>: ");
        self.generated
            .iter()
            .fold(text.into_owned(), |text, (name, shape)| {
                text.replace(name.as_str(), shape)
            })
    }
}

/// Faults found while walking a Go map come in no promised order.
fn faults(body: &mut Value) {
    let Some(Value::Array(causes)) = body.pointer_mut("/details/causes") else {
        return;
    };
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_string();
    causes.sort_by_cached_key(|cause| (text(cause, "field"), text(cause, "message")));
    // kube-apiserver judges metadata more than once and lists the same cause as often.
    causes.dedup();
    let mut told: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")))
        .collect();
    told.dedup();
    let told = format!("{}]", told.join(", "));
    if let Some(Value::String(message)) = body.get_mut("message")
        && let Some(start) = message.find(" is invalid: [")
    {
        let start = start + " is invalid: [".len();
        // Only the order may differ; anything else in the message stays to be compared.
        if message.len() - start == told.len() {
            message.replace_range(start.., &told);
        }
    }
}

fn is_list(object: &Map<String, Value>) -> bool {
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    kind.ends_with("List") || kind == "Table" || object.contains_key("items")
}

fn age(cell: &mut Value) {
    if let Value::String(text) = cell
        && AGE.is_match(text)
    {
        *text = "<age>".into();
    }
}

/// Entries are ordered by time first, so their order depends on how a case falls across seconds.
fn managers(entries: &mut [Value]) {
    for entry in entries.iter_mut() {
        if let Some(time) = entry.get_mut("time") {
            *time = "<time>".into();
        }
    }
    entries.sort_by_cached_key(|entry| {
        ["operation", "manager", "apiVersion", "subresource"]
            .map(|field| entry[field].as_str().unwrap_or_default().to_string())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normalised(normaliser: &mut Normaliser, body: Value) -> Value {
        let mut answer = Answer {
            body,
            ..Answer::default()
        };
        normaliser.answer(&mut answer);
        answer.body
    }

    #[test]
    fn equal_revisions_keep_equal_names_and_new_ones_get_new_names() {
        let mut normaliser = Normaliser::default();
        let object = |revision: &str| json!({"metadata": {"resourceVersion": revision}});
        let name = |value: Value| value["metadata"]["resourceVersion"].clone();
        assert_eq!(
            name(normalised(&mut normaliser, object("17"))),
            "<revision 1>"
        );
        assert_eq!(
            name(normalised(&mut normaliser, object("90"))),
            "<revision 2>"
        );
        assert_eq!(
            name(normalised(&mut normaliser, object("17"))),
            "<revision 1>"
        );
    }

    #[test]
    fn several_faults_are_put_in_order() {
        let cause = |field: &str| json!({"field": field, "message": "Required value"});
        let body = json!({
            "message": "X \"a\" is invalid: [c: Required value, b: Required value]",
            "details": {"causes": [cause("c"), cause("b")]},
        });
        let body = normalised(&mut Normaliser::default(), body);
        let expected = "X \"a\" is invalid: [b: Required value, c: Required value]";
        assert_eq!(body["message"], expected);
        assert_eq!(body["details"]["causes"][0]["field"], "b");
    }

    #[test]
    fn a_generated_name_is_known_wherever_it_stands() {
        let mut normaliser = Normaliser::default();
        let object = json!({"metadata": {"generateName": "job-", "name": "job-x7k2p"}});
        normalised(&mut normaliser, object);
        let status = normalised(
            &mut normaliser,
            json!({"message": "\"job-x7k2p\" not found"}),
        );
        assert_eq!(status["message"], "\"job-<random>\" not found");
    }
}
