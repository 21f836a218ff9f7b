//! Choosing the keys of a page. Candidates come in the order of keys, as they are today; a past
//! revision overlays them with what the log says was there before their first change since. The
//! selectors are judged here, on the facts of the very state that would be shown.

use crate::facts::Facts;
use muster_apiserver::store::{Key, ListQuery, StoreError};
use std::cmp::Ordering;
use std::iter::Peekable;
use std::vec::IntoIter;

/// A key that may be on the page, and its state; none where there was no object.
pub(crate) struct Candidate {
    pub(crate) key: Key,
    pub(crate) body: Option<i64>,
    pub(crate) facts: Option<String>,
}

/// A page that is being chosen.
pub(crate) struct Choice<'a> {
    query: &'a ListQuery,
    past: Peekable<IntoIter<Candidate>>,
    chosen: Vec<(Key, i64)>,
    /// One more than the page holds, which says whether there are more.
    enough: usize,
}

impl<'a> Choice<'a> {
    /// Starts with what the past has, in the order of keys; nothing for the present.
    pub(crate) fn new(query: &'a ListQuery, past: Vec<Candidate>) -> Self {
        Choice {
            query,
            past: past.into_iter().peekable(),
            chosen: Vec::new(),
            enough: query.limit.saturating_add(1),
        }
    }

    /// Whether more than the key is needed to judge the selectors.
    pub(crate) fn needs_facts(query: &ListQuery) -> bool {
        let of_key = ["metadata.name", "metadata.namespace"];
        !query.labels.is_empty()
            || query
                .fields
                .0
                .iter()
                .any(|term| !of_key.contains(&term.field.as_str()))
    }

    /// Whether the page is chosen.
    pub(crate) fn is_full(&self) -> bool {
        self.chosen.len() >= self.enough
    }

    /// How many candidates would do if all were selected.
    pub(crate) fn lacks(&self) -> usize {
        self.enough.saturating_sub(self.chosen.len())
    }

    /// The next of today's objects.
    pub(crate) fn offer(&mut self, today: Candidate) -> Result<(), StoreError> {
        while let Some(candidate) = self.past.next_if(|candidate| candidate.key <= today.key) {
            let order = candidate.key.cmp(&today.key);
            self.take(candidate)?;
            if order == Ordering::Equal {
                return Ok(());
            }
        }
        self.take(today)
    }

    /// The keys of the page with the numbers of their states, and whether there are more.
    pub(crate) fn finish(mut self) -> Result<(Vec<(Key, i64)>, bool), StoreError> {
        while !self.is_full() {
            let Some(candidate) = self.past.next() else {
                break;
            };
            self.take(candidate)?;
        }
        let more = self.chosen.len() > self.query.limit;
        self.chosen.truncate(self.query.limit);
        Ok((self.chosen, more))
    }

    fn take(&mut self, candidate: Candidate) -> Result<(), StoreError> {
        let Candidate { key, body, facts } = candidate;
        let Some(body) = body else { return Ok(()) };
        let ListQuery {
            namespace,
            labels,
            fields,
            ..
        } = self.query;
        if namespace
            .as_ref()
            .is_some_and(|only| *only != key.namespace)
        {
            return Ok(());
        }
        let everything = labels.is_empty() && fields.is_empty();
        if everything || Facts::read(facts.as_deref())?.selected(&key, labels, fields) {
            self.chosen.push((key, body));
        }
        Ok(())
    }
}
