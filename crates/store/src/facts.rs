//! What can be selected of one state of an object, kept beside the state as a small JSON text.
//! Selectors are judged on it, for past states as for present ones, without reading the object;
//! and the difference of two states is what the side tables have to change.

use crate::fault::damaged;
use muster_apiserver::store::{Index, Key, StoreError};
use muster_kind::selector::{FieldSelector, LabelSelector};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Labels, selectable fields, owners and links of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(rename = "f", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) fields: BTreeMap<String, String>,
    #[serde(rename = "o", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) owners: BTreeSet<String>,
    #[serde(rename = "k", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) links: BTreeSet<String>,
}

impl Facts {
    /// What of an index is kept here; the UID has a column of its own.
    pub(crate) fn of(index: Index) -> Self {
        Facts {
            labels: index.labels,
            fields: index.fields,
            owners: index.owners.into_iter().collect(),
            links: index.links,
        }
    }

    /// Reads the column; nothing is written as null.
    pub(crate) fn read(text: Option<&str>) -> Result<Self, StoreError> {
        match text {
            None => Ok(Facts::default()),
            Some(text) => {
                serde_json::from_str(text).map_err(|_| damaged("facts of a state are no JSON"))
            }
        }
    }

    /// Writes the column.
    pub(crate) fn write(&self) -> Option<String> {
        if *self == Facts::default() {
            return None;
        }
        // Maps of strings have no way to fail.
        serde_json::to_string(self).ok()
    }

    /// Whether a state with these facts, at this key, is selected.
    pub(crate) fn selected(
        &self,
        key: &Key,
        labels: &LabelSelector,
        fields: &FieldSelector,
    ) -> bool {
        labels.matches(&self.labels)
            && fields.matches(|field| match field {
                "metadata.name" => Some(key.name.as_str()),
                "metadata.namespace" => Some(key.namespace.as_str()),
                other => self.fields.get(other).map(String::as_str),
            })
    }
}

/// The name under which links stand among the fields. No selector can name it.
pub(crate) const LINK: &str = ".link";

/// The fields and links of `new` that `old` lacks: swap the two for what has to go.
pub(crate) fn added_fields<'a>(old: &'a Facts, new: &'a Facts) -> Vec<(&'a str, &'a str)> {
    let links = new.links.difference(&old.links);
    let mut entries = added(&old.fields, &new.fields);
    entries.extend(links.map(|link| (LINK, link.as_str())));
    entries
}

/// The entries of `new` that `old` lacks: swap the two for what has to go.
pub(crate) fn added<'a>(
    old: &BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, &'a str)> {
    new.iter()
        .filter(|(key, value)| old.get(*key) != Some(*value))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}
