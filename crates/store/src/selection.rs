//! What a list asks for, as both engines look for it: a range of keys, and the entries of labels
//! and fields that every selected object must have.

use muster_apiserver::store::{Key, ListQuery};
use muster_kind::selector::Requirement;

/// More values than this and walking the objects is as good.
const VALUES: usize = 16;
/// An index whose matches have to be sorted is used up to so many of them.
pub(crate) const SORTED: i64 = 1000;

/// The part of a resource's keys a list is about.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) resource: i64,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) after: Option<&'a Key>,
}

/// Entries of an index: one key, and these values or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entries<'a> {
    pub(crate) table: &'static str,
    pub(crate) key: &'a str,
    pub(crate) values: Option<Vec<&'a str>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn of(query: &'a ListQuery, resource: i64) -> Self {
        let namespace = query.namespace.as_deref();
        Scope {
            resource,
            namespace: namespace.or_else(|| query.fields.requires("metadata.namespace")),
            name: query.fields.requires("metadata.name"),
            after: query.after.as_ref(),
        }
    }
}

impl<'a> Entries<'a> {
    /// The indexes every selected object must be in.
    pub(crate) fn required(query: &'a ListQuery) -> Vec<Self> {
        let labels = query.labels.0.iter().filter_map(|requirement| {
            let (key, values) = match requirement {
                Requirement::In(key, values) if values.len() <= VALUES => {
                    (key, Some(values.iter().map(String::as_str).collect()))
                }
                Requirement::In(key, _) | Requirement::Exists(key) => (key, None),
                Requirement::Greater(key, _) | Requirement::Less(key, _) => (key, None),
                Requirement::NotIn(..) | Requirement::Absent(_) => return None,
            };
            Some(Entries {
                table: "label",
                key,
                values,
            })
        });
        // An absent field is as good as an empty one, so emptiness has no entry.
        let fields = query.fields.0.iter().filter(|term| {
            term.equal && !term.value.is_empty() && !term.field.starts_with("metadata.")
        });
        let fields = fields.map(|term| Entries {
            table: "field",
            key: &term.field,
            values: Some(vec![&term.value]),
        });
        labels.chain(fields).collect()
    }

    /// One value's entries lie in the order of keys.
    pub(crate) fn in_order(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.len() == 1)
    }
}
