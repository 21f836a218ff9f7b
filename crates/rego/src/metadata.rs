//! What a policy says of itself: in the `METADATA` comment before its package, or else by the rules
//! `__rego_metadata__` and `__rego_input__`, which came before such comments. The parser drops comments,
//! so this one is read from the text. It is hostile like the rest: it is YAML within limits, and what
//! has another shape than expected is not there.

use crate::error::{AskError, LoadError, Place};
use crate::{Module, Program, Value, functions, show};
use serde_json::Value as Json;

/// The longest text of it that is kept.
const LONGEST: usize = 16 * 1024;
/// The most of anything that there may be several of.
const MOST: usize = 64;

/// What a policy says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// What it is known by.
    pub id: Option<String>,
    /// What it is also known by, or was.
    pub aliases: Vec<String>,
    /// What it is about, in a few words.
    pub title: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// How bad it is to break it, as it is written.
    pub severity: Option<String>,
    /// What it belongs to.
    pub category: Option<String>,
    /// What to do about it.
    pub remediation: Option<String>,
    /// Where there is more about it.
    pub url: Option<String>,
    /// The kinds that it judges, as they are written.
    pub kinds: Option<String>,
    /// What it judges.
    pub selectors: Vec<Selector>,
}

/// Some of what a policy judges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Where the input comes from, like `kubernetes`.
    pub kind_of_input: String,
    /// What of it; everything, if there are none.
    pub subtypes: Vec<Subtype>,
}

/// One kind of input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtype {
    /// A group of the API.
    pub group: Option<String>,
    /// A version of it.
    pub version: Option<String>,
    /// A kind.
    pub kind: Option<String>,
    /// A namespace.
    pub namespace: Option<String>,
}

/// Reads the comment before the package, if there is one.
pub(crate) fn block(module: &Module<'_>) -> Result<Option<Metadata>, LoadError> {
    let lines = module.text.lines().map(str::trim_start).enumerate();
    let mut lines = lines.take_while(|(_, line)| line.is_empty() || line.starts_with('#'));
    let is_title = |line: &str| line.trim_start_matches('#').trim() == "METADATA";
    let Some((start, _)) = lines.find(|(_, line)| is_title(line)) else {
        return Ok(None);
    };
    let mut text = String::new();
    for (_, line) in lines {
        let Some(line) = line.strip_prefix('#') else {
            break;
        };
        text.push_str(line.strip_prefix(' ').unwrap_or(line));
        text.push('\n');
    }
    let read = functions::yaml(&text).map_err(|(line, why)| LoadError::Wrong {
        place: Place {
            module: module.name.to_owned(),
            position: line.map(|line| (line.saturating_add(start as u32 + 1), 1)),
        },
        why: format!("METADATA: {why}"),
    })?;
    let custom = read.get("custom").unwrap_or(&Json::Null);
    let mut metadata = Metadata::of(custom);
    metadata.title = one(&read, &["title"]);
    metadata.description = one(&read, &["description"]);
    metadata.selectors = selectors(&custom["input"]["selector"]);
    Ok(Some(metadata))
}

/// Asks the rules that came before the comment. A policy whose rules about itself fail has none.
pub(crate) fn rules(program: &Program) -> Result<Metadata, LoadError> {
    let names = ["__rego_metadata__", "__rego_input__"];
    if !names.iter().any(|name| program.has(name)) {
        return Ok(Metadata::default());
    }
    let values = match program.ask(Value::new_object(), &names) {
        Ok(values) => values,
        Err(AskError::Unavailable(why)) => return Err(LoadError::Unavailable(why)),
        Err(_) => Vec::new(),
    };
    let json = |value: Option<&Value>| {
        let whole = value.filter(|value| show(value, MOST * LONGEST).len() <= MOST * LONGEST);
        let json = whole.and_then(|value| serde_json::to_value(value).ok());
        json.unwrap_or(Json::Null)
    };
    let mut metadata = Metadata::of(&json(values.first()));
    metadata.selectors = selectors(&json(values.get(1))["selector"]);
    Ok(metadata)
}

impl Metadata {
    /// What has the same names in both.
    fn of(fields: &Json) -> Metadata {
        let aliases = fields.get("aliases").and_then(Json::as_array);
        let aliases = aliases.into_iter().flatten().filter_map(text).take(MOST);
        Metadata {
            id: one(fields, &["id", "avd_id"]),
            aliases: aliases.collect(),
            title: one(fields, &["title"]),
            description: one(fields, &["description"]),
            severity: one(fields, &["severity"]),
            category: one(fields, &["category", "type"]),
            remediation: one(
                fields,
                &["recommended_action", "recommended_actions", "remediation"],
            ),
            url: one(fields, &["url"]),
            kinds: one(fields, &["kinds"]),
            selectors: Vec::new(),
        }
    }
}

/// The first of these that is there.
fn one(fields: &Json, names: &[&str]) -> Option<String> {
    let mut values = names.iter().filter_map(|name| fields.get(name));
    values.find_map(text)
}

fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) if !text.is_empty() && text.len() <= LONGEST => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        // Names of kinds may be a list as well as one text.
        Json::Array(items) if !items.is_empty() && items.len() <= MOST => {
            let items: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

fn selectors(list: &Json) -> Vec<Selector> {
    let list = list.as_array().into_iter().flatten().take(MOST);
    let selectors = list.map(|selector| {
        let subtypes = selector.get("subtypes").and_then(Json::as_array);
        let subtypes = subtypes.into_iter().flatten().take(MOST);
        Selector {
            kind_of_input: one(selector, &["type"]).unwrap_or_default(),
            subtypes: subtypes
                .map(|subtype| Subtype {
                    group: one(subtype, &["group"]),
                    version: one(subtype, &["version"]),
                    kind: one(subtype, &["kind"]),
                    namespace: one(subtype, &["namespace"]),
                })
                .collect(),
        }
    });
    selectors.collect()
}
