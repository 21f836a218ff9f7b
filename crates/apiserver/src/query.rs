//! The query parameters of the API, read once, with the errors Kubernetes gives for bad ones.

use muster_kind::kind::FieldError;
use muster_kind::selector::{FieldSelector, LabelSelector};
use muster_kind::{FieldPath, Kind, Status};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time of a watch that a client can ask for.
const MAX_WATCH_SECONDS: u64 = 24 * 60 * 60;

/// All parameters of a request; of a repeated one the first counts.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads a query string.
    pub fn parse(text: &str) -> Self {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            parameters
                .entry(key.into_owned())
                .or_default()
                .push(value.into_owned());
        }
        Query(parameters)
    }
    /// A parameter's value, empty if absent.
    pub fn get(&self, key: &str) -> &str {
        self.0
            .get(key)
            .and_then(|values| values.first())
            .map_or("", String::as_str)
    }
    /// All values of a repeated parameter.
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
    /// A switch: present and neither `false` nor `0`.
    pub fn flag(&self, key: &str) -> bool {
        self.0
            .get(key)
            .and_then(|values| values.first())
            .is_some_and(|value| !matches!(value.as_str(), "false" | "0"))
    }
    /// Whether the parameter stands in the query.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
    fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        match self.get(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {text:?}: invalid syntax"
                ))
            }),
        }
    }
}

/// From which revision a read may, or must, be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The newest.
    Newest,
    /// Any that is at hand.
    Any,
    /// This one or a newer one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// The options of list and watch.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Which labels.
    pub labels: LabelSelector,
    /// Which fields.
    pub fields: FieldSelector,
    /// At most so many; 0 means all.
    pub limit: usize,
    /// The token of the page before.
    pub continue_token: String,
    /// From which revision.
    pub revision: Revision,
    /// The time after which a watch ends; at most a day. The server chooses if it is absent.
    pub timeout: Option<Duration>,
    /// A watch sends bookmarks.
    pub bookmarks: bool,
    /// A watch starts with the present state and says when that is complete.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and checks the options of a list, or of a watch.
    pub fn read(query: &Query, kind: &Kind, watch: bool) -> Result<Self, Status> {
        let labels = LabelSelector::parse(query.get("labelSelector"))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector"))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        check_fields(&fields, kind)?;
        let limit = query.number("limit")?.unwrap_or_default();
        let timeout = query
            .number("timeoutSeconds")?
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds.min(MAX_WATCH_SECONDS)));
        let send_initial_events = query
            .has("sendInitialEvents")
            .then(|| query.flag("sendInitialEvents"));
        Ok(ListOptions {
            labels,
            fields,
            limit: usize::try_from(limit).unwrap_or_default(),
            continue_token: query.get("continue").into(),
            revision: read_revision(query, watch, limit)?,
            timeout,
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events,
        })
    }
}

fn check_fields(fields: &FieldSelector, kind: &Kind) -> Result<(), Status> {
    for term in &fields.0 {
        let field = &term.field;
        let known = field == "metadata.name"
            || (field == "metadata.namespace" && kind.is_namespaced())
            || kind.selectable.contains(&FieldPath::parse(field));
        if known {
            continue;
        }
        return Err(Status::bad_request(
            if kind.builtin && kind.selectable.is_empty() {
                format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {field}")
            },
        ));
    }
    Ok(())
}

fn read_revision(query: &Query, watch: bool, limit: i64) -> Result<Revision, Status> {
    let text = query.get("resourceVersion");
    let matching = query.get("resourceVersionMatch");
    let errors = match_errors(query, watch);
    if !errors.is_empty() {
        return Err(Status::invalid("meta.k8s.io", "ListOptions", "", errors));
    }
    let number = parse_revision(text).map_err(|why| {
        if watch {
            Status::unexplained(why)
        } else {
            Status::bad_request(format!("invalid resource version: {why}"))
        }
    })?;
    Ok(match (number, matching) {
        (None, _) => Revision::Newest,
        (Some(0), _) => Revision::Any,
        (Some(n), "Exact") => Revision::Exact(n),
        // The old meaning of a revision with a limit, kept by Kubernetes.
        (Some(n), "") if limit > 0 && !watch => Revision::Exact(n),
        (Some(n), _) => Revision::NotOlderThan(n),
    })
}

/// What is wrong with the way a revision is to be matched.
fn match_errors(query: &Query, watch: bool) -> Vec<FieldError> {
    const FIELD: &str = "resourceVersionMatch";
    let matching = query.get(FIELD);
    let initial = query.has("sendInitialEvents");
    let continued = !query.get("continue").is_empty();
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    if watch {
        if initial && matching != "NotOlderThan" {
            forbid(
                FIELD,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
        }
        if !initial && !matching.is_empty() {
            forbid(
                FIELD,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if continued {
            forbid(
                FIELD,
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
        if initial && !matches!(matching, "" | "NotOlderThan") {
            errors.push(FieldError::not_supported(
                FIELD,
                &json!(matching),
                &["NotOlderThan"],
            ));
        }
        return errors;
    }
    if initial {
        forbid(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        );
    }
    if matching.is_empty() {
        return errors;
    }
    if query.get("resourceVersion").is_empty() {
        forbid(
            FIELD,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
    }
    if continued {
        forbid(
            FIELD,
            "resourceVersionMatch is forbidden when continue is provided",
        );
    }
    if !matches!(matching, "Exact" | "NotOlderThan") {
        let supported = ["Exact", "NotOlderThan", ""];
        errors.push(FieldError::not_supported(
            FIELD,
            &json!(matching),
            &supported,
        ));
    } else if matching == "Exact" && query.get("resourceVersion") == "0" {
        forbid(
            FIELD,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
    }
    errors
}

/// Reads a revision; empty is none. The error is the text of what is wrong.
pub fn parse_revision(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        )
    })
}

/// How strictly fields are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown and duplicate fields are dropped in silence.
    Ignore,
    /// They are dropped with a warning.
    Warn,
    /// They are errors.
    Strict,
}

/// The options every write has.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Nothing is kept.
    pub dry_run: bool,
    /// Who owns the fields written; empty if the client does not say.
    pub manager: String,
    /// How strictly fields are judged.
    pub validation: FieldValidation,
    /// An apply takes fields from other managers.
    pub force: bool,
}

impl WriteOptions {
    /// Reads and checks the options; `kind` names them in errors (`CreateOptions`, ...).
    pub fn read(query: &Query, kind: &str) -> Result<Self, Status> {
        let mut errors = Vec::new();
        for (index, value) in query.all("dryRun").iter().enumerate() {
            if value != "All" {
                let field = if query.all("dryRun").len() == 1 && index == 0 {
                    "dryRun".to_owned()
                } else {
                    format!("dryRun[{index}]")
                };
                errors.push(FieldError::not_supported(
                    &field,
                    &json!(query.all("dryRun")),
                    &["All"],
                ));
                break;
            }
        }
        let manager = query.get("fieldManager").to_owned();
        if manager.len() > 128 {
            errors.push(FieldError {
                reason: "FieldValueTooLong",
                field: "fieldManager".into(),
                message: "Too long: may not be more than 128 bytes".into(),
            });
        }
        if let Some((at, bad)) = manager.chars().enumerate().find(|(_, c)| c.is_control()) {
            errors.push(FieldError::invalid(
                "fieldManager",
                &json!(manager),
                &format!(
                    "invalid character U+{:04X} (at position {at})",
                    u32::from(bad)
                ),
            ));
        }
        let validation = match query.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &json!(other),
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", kind, "", errors));
        }
        Ok(WriteOptions {
            dry_run: !query.all("dryRun").is_empty(),
            manager,
            validation,
            force: query.flag("force"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_watch_is_bounded() {
        let kind = Kind::namespaced("example.com", "v1", "Report");
        for (asked, expected) in [
            ("", None),
            ("timeoutSeconds=", None),
            ("timeoutSeconds=0", None),
            ("timeoutSeconds=-9223372036854775808", None),
            ("timeoutSeconds=1", Some(1)),
            ("timeoutSeconds=86400", Some(86_400)),
            ("timeoutSeconds=86401", Some(86_400)),
            ("timeoutSeconds=9223372036854775807", Some(86_400)),
        ] {
            let options = ListOptions::read(&Query::parse(asked), &kind, true).unwrap();
            let seconds = options.timeout.map(|timeout| timeout.as_secs());
            assert_eq!(seconds, expected, "{asked}");
        }
        // Kubernetes refuses what its number cannot hold.
        let query = Query::parse("timeoutSeconds=9223372036854775808");
        assert_eq!(
            ListOptions::read(&query, &kind, true).unwrap_err().code,
            400
        );
    }
}
