//! `metadata.managedFields`: who owns which fields of an object, since when and by which kind of
//! request.

use crate::compare::Comparison;
use crate::fields_v1;
use crate::set::Set;
use serde_json::{Map, Value, json};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// The number of entries an object may have. A request that sends more is refused; of what is
/// already stored the oldest entries are dropped at the next write.
pub const MAX_ENTRIES: usize = 1000;
/// The number of entries of updates an object may have before the oldest are folded together.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager in whose name old updates are folded together.
const ANCIENT: &str = "ancient-changes";

/// The kind of request by which a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else: create, update, patch.
    Update,
}

impl Operation {
    /// The name in `managedFields`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The fields one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name the client gave itself.
    pub manager: String,
    /// How it came to own the fields.
    pub operation: Operation,
    /// The version in which it wrote.
    pub api_version: String,
    /// When its ownership last changed, RFC 3339.
    pub time: Option<String>,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
    /// What it owns.
    pub fields: Set,
}

/// What the entries of one manager have in common. An applier stays the same through versions.
type Identity<'e> = (&'e str, Operation, Option<&'e str>, &'e str);

impl Entry {
    fn identity(&self) -> Identity<'_> {
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        let version = match self.operation {
            Operation::Apply => None,
            Operation::Update => Some(self.api_version.as_str()),
        };
        (
            &self.manager,
            self.operation,
            version,
            self.subresource.as_str(),
        )
    }

    /// Whether both entries are one manager's.
    pub fn same_manager(&self, other: &Entry) -> bool {
        self.identity() == other.identity()
    }

    /// The order of entries of one time.
    fn compare_names(&self, other: &Entry) -> Ordering {
        (&self.manager, &self.api_version, &self.subresource).cmp(&(
            &other.manager,
            &other.api_version,
            &other.subresource,
        ))
    }

    fn decode(index: usize, entry: &Value) -> Result<Entry, String> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".into()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".into());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => {
                return Err(format!(
                    "missing fieldsType in managed fields entry {index}"
                ));
            }
            other => {
                return Err(format!(
                    "invalid fieldsType {other:?} in managed fields entry {index}"
                ));
            }
        }
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => fields_v1::decode(fields)
                .map_err(|problem| format!("error decoding versioned set: {problem}"))?,
        };
        Ok(Entry {
            manager: text("manager").into(),
            operation,
            api_version: text("apiVersion").into(),
            time: entry.get("time").and_then(Value::as_str).map(String::from),
            subresource: text("subresource").into(),
            fields,
        })
    }

    fn encode(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.into(), value);
        if !self.manager.is_empty() {
            put("manager", json!(self.manager));
        }
        put("operation", json!(self.operation.name()));
        put("apiVersion", json!(self.api_version));
        if let Some(time) = &self.time {
            put("time", json!(time));
        }
        put("fieldsType", json!("FieldsV1"));
        put("fieldsV1", fields_v1::encode(&self.fields));
        if !self.subresource.is_empty() {
            put("subresource", json!(self.subresource));
        }
        Value::Object(entry)
    }
}

/// The entries of `metadata.managedFields`, one for each manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// In no particular order; [`Managed::encode`] sorts them.
    pub entries: Vec<Entry>,
}

impl Managed {
    /// Reads the array. Absent and null are no entries; of entries of one manager the last counts.
    pub fn decode(fields: Option<&Value>) -> Result<Managed, String> {
        let entries = match fields {
            None | Some(Value::Null) => return Ok(Managed::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managedFields must be a list".into()),
        };
        let entries = entries.iter().enumerate();
        let entries = entries.map(|(index, entry)| Entry::decode(index, entry));
        let mut entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
        let mut seen = HashSet::with_capacity(entries.len());
        let last = entries.iter().rev();
        let mut last: Vec<bool> = last.map(|entry| seen.insert(entry.identity())).collect();
        entries.retain(|_| last.pop().unwrap_or_default());
        Ok(Managed { entries })
    }

    /// Reads `metadata.managedFields` of an object.
    pub fn of(object: &Value) -> Result<Managed, String> {
        Managed::decode(
            object
                .get("metadata")
                .and_then(|metadata| metadata.get("managedFields")),
        )
    }

    /// Writes the array: applies before updates, older before newer.
    pub fn encode(&self) -> Value {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by(|left, right| {
            left.operation
                .cmp(&right.operation)
                .then_with(|| left.time.cmp(&right.time))
                .then_with(|| left.compare_names(right))
        });
        Value::Array(entries.into_iter().map(Entry::encode).collect())
    }

    /// Writes the entries into an object; no entries leave no trace.
    pub fn store(&self, object: &mut Value) {
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
            return;
        };
        if self.entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".into(), self.encode());
        }
    }

    /// Takes a manager's entry out.
    pub(crate) fn take(&mut self, like: &Entry) -> Option<Entry> {
        let place = self
            .entries
            .iter()
            .position(|entry| entry.same_manager(like))?;
        Some(self.entries.swap_remove(place))
    }

    /// Takes from all managers the fields that somebody changed or removed.
    pub(crate) fn disown(&mut self, comparison: &Comparison) {
        self.entries.retain_mut(|entry| {
            let fields = std::mem::take(&mut entry.fields);
            entry.fields = fields
                .difference(&comparison.modified)
                .difference(&comparison.added)
                .difference(&comparison.removed);
            !entry.fields.is_empty()
        });
    }

    /// Whether both differ in nothing but times.
    pub(crate) fn same_but_times(&self, other: &Managed) -> bool {
        if self.entries.len() != other.entries.len() {
            return false;
        }
        let others = other.entries.iter().map(|entry| (entry.identity(), entry));
        let others: HashMap<_, _> = others.collect();
        self.entries.iter().all(|entry| {
            let other = others.get(&entry.identity());
            other.is_some_and(|other| {
                entry.api_version == other.api_version && entry.fields == other.fields
            })
        })
    }

    /// Drops the oldest entries of others than the writer until there are no more than
    /// [`MAX_ENTRIES`]. Their managers own nothing until they write again.
    pub(crate) fn drop_oldest(&mut self, writer: &Entry) {
        if self.entries.len() <= MAX_ENTRIES {
            return;
        }
        let is_other = |entry: &Entry| !entry.same_manager(writer);
        self.entries.sort_by_cached_key(|entry| {
            let time = Reverse(entry.time.clone());
            (is_other(entry), time, entry.manager.clone())
        });
        self.entries.truncate(MAX_ENTRIES);
    }

    /// Folds the oldest updates of a version into one entry until there are not too many.
    pub(crate) fn fold_ancient(&mut self) {
        let (mut updates, applies): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| entry.operation == Operation::Update);
        self.entries = applies;
        let mut excess = updates.len().saturating_sub(MAX_UPDATE_MANAGERS);
        if excess > 0 {
            updates.sort_by(|left, right| {
                left.time
                    .cmp(&right.time)
                    .then_with(|| left.compare_names(right))
            });
        }
        // The oldest of each version, kept aside until a second shows that it must fold.
        let mut folded: BTreeMap<String, Entry> = BTreeMap::new();
        for mut entry in updates {
            if excess == 0 {
                self.entries.push(entry);
                continue;
            }
            if let Some(oldest) = folded.remove(&entry.api_version) {
                entry.fields = entry.fields.union(oldest.fields);
                entry.manager = ANCIENT.into();
                entry.subresource = String::new();
                excess -= 1;
            }
            folded.insert(entry.api_version.clone(), entry);
        }
        for entry in folded.into_values() {
            // A younger bucket of the same version may have been out of reach.
            match self.take(&entry) {
                Some(mut bucket) => {
                    bucket.fields = bucket.fields.union(entry.fields);
                    self.entries.push(bucket);
                }
                None => self.entries.push(entry),
            }
        }
    }
}

/// The number of entries of an object, as written.
pub(crate) fn count(object: &Value) -> usize {
    let entries = object.get("metadata").and_then(|m| m.get("managedFields"));
    entries.and_then(Value::as_array).map_or(0, Vec::len)
}

/// A request sends more entries of `metadata.managedFields` than an object may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEntries {
    /// The number of entries that it sends.
    pub count: usize,
}

impl fmt::Display for TooManyEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        write!(f, "{count} managers of fields are more than {MAX_ENTRIES}")
    }
}

impl std::error::Error for TooManyEntries {}

/// Takes `metadata.managedFields` out of an object.
pub(crate) fn take_from(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")?
        .as_object_mut()?
        .remove("managedFields")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// How often an entry was looked at to find out whose it is.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    fn looks(work: impl FnOnce()) -> usize {
        LOOKS.set(0);
        work();
        LOOKS.get()
    }

    fn appliers(count: usize) -> Value {
        let entries = (0..count).map(|number| {
            json!({
                "manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1",
                "time": format!("{number:06}"), "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {format!("f:{number}"): {}}},
            })
        });
        entries.collect()
    }

    #[test]
    fn twice_the_entries_are_twice_the_work() {
        let work = |count: usize| {
            let fields = appliers(count);
            let mut decoded = Managed::default();
            let decode = looks(|| decoded = Managed::decode(Some(&fields)).unwrap());
            assert_eq!(decoded.entries.len(), count);
            let compare = looks(|| assert!(decoded.same_but_times(&decoded.clone())));
            let writer = decoded.entries[0].clone();
            let drop = looks(|| decoded.drop_oldest(&writer));
            assert_eq!(decoded.entries.len(), MAX_ENTRIES);
            [decode, compare, drop]
        };
        assert_eq!(work(30_000), [30_000, 60_000, 60_000]);
        assert_eq!(work(60_000), [60_000, 120_000, 120_000]);
    }

    #[test]
    fn the_last_of_the_entries_of_one_manager_counts() {
        let mut managed = Managed::default();
        for (name, version, time) in [("a", "v1", "1"), ("b", "v1", "2"), ("a", "v1", "3")] {
            for operation in [Operation::Apply, Operation::Update] {
                managed.entries.push(entry(name, operation, version, time));
            }
        }
        managed
            .entries
            .push(entry("a", Operation::Apply, "v2", "4"));
        managed
            .entries
            .push(entry("a", Operation::Update, "v2", "5"));
        // Not sorted, as `encode` would do it.
        let encoded: Value = managed.entries.iter().map(Entry::encode).collect();
        let decoded = Managed::decode(Some(&encoded)).unwrap();
        let times: Vec<_> = (decoded.entries.iter())
            .map(|entry| entry.time.as_deref().unwrap())
            .collect();
        assert_eq!(times, ["2", "2", "3", "4", "5"]);
    }

    #[test]
    fn the_oldest_entries_are_dropped_but_not_the_writers() {
        let mut managed = Managed::decode(Some(&appliers(MAX_ENTRIES + 2))).unwrap();
        let mut timeless = entry("timeless", Operation::Apply, "v1", "");
        timeless.time = None;
        managed.entries.push(timeless);
        let writer = managed.entries[0].clone();
        managed.drop_oldest(&writer);
        let has = |name: &str| managed.entries.iter().any(|entry| entry.manager == name);
        assert_eq!(managed.entries.len(), MAX_ENTRIES);
        for (name, expected) in [
            ("m0", true),
            ("m1", false),
            ("m2", false),
            ("m3", true),
            ("m1001", true),
            ("timeless", false),
        ] {
            assert_eq!(has(name), expected, "{name}");
        }
    }

    fn entry(manager: &str, operation: Operation, version: &str, time: &str) -> Entry {
        Entry {
            manager: manager.into(),
            operation,
            api_version: version.into(),
            time: Some(time.into()),
            subresource: String::new(),
            fields: Set::of_fields([manager]),
        }
    }

    #[test]
    fn entries_are_written_applies_first_and_by_age() {
        use Operation::{Apply, Update};
        let managed = Managed {
            entries: vec![
                entry("late", Update, "v1", "2"),
                entry("b", Update, "v1", "1"),
                entry("a", Update, "v1", "1"),
                entry("z", Apply, "v1", "9"),
            ],
        };
        let encoded = managed.encode();
        let names: Vec<_> = encoded
            .as_array()
            .unwrap()
            .iter()
            .map(|e| &e["manager"])
            .collect();
        assert_eq!(names, ["z", "a", "b", "late"]);
        assert_eq!(Managed::decode(Some(&encoded)).unwrap().encode(), encoded);
    }

    #[test]
    fn broken_entries_are_named() {
        for (broken, problem) in [
            (json!([{}]), "operation must be `Apply` or `Update`"),
            (
                json!([{"operation": "Apply"}]),
                "apiVersion must not be empty",
            ),
            (
                json!([{"operation": "Apply", "apiVersion": "v1"}]),
                "missing fieldsType in managed fields entry 0",
            ),
            (
                json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"}]),
                "invalid fieldsType \"V2\" in managed fields entry 0",
            ),
        ] {
            assert_eq!(Managed::decode(Some(&broken)).unwrap_err(), problem);
        }
    }

    #[test]
    fn the_oldest_updates_fold_into_one_for_each_version() {
        let mut managed = Managed::default();
        for number in 0..13 {
            let version = if number % 2 == 0 { "v1" } else { "v2" };
            let (name, time) = (format!("m{number:02}"), format!("{number:02}"));
            managed
                .entries
                .push(entry(&name, Operation::Update, version, &time));
        }
        let applier = entry("applier", Operation::Apply, "v1", "00");
        managed.entries.push(applier);
        managed.fold_ancient();
        assert_eq!(managed.entries.len(), 11);
        let ancient: Vec<_> = managed
            .entries
            .iter()
            .filter(|entry| entry.manager == ANCIENT)
            .collect();
        assert_eq!(ancient.len(), 2);
        assert_eq!(ancient[0].fields, Set::of_fields(["m00", "m02", "m04"]));
        assert_eq!(ancient[0].time.as_deref(), Some("04"));
        assert_eq!(ancient[1].fields, Set::of_fields(["m01", "m03"]));
    }
}
