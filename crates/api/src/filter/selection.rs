//! How a repository combines its conditions, and where the images that could meet them are found:
//! by asking for the tags and digests that the conditions name, or else by listing all tags.

use super::{Exact, MatchCondition};
use std::collections::BTreeSet;

/// Whether all conditions must hold, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// All of them.
    #[default]
    And,
    /// At least one.
    Or,
}

impl Operator {
    /// Reads it as a Registry has it; all of them where it does not say.
    pub fn read(text: &str) -> Operator {
        match text {
            "Or" => Operator::Or,
            _ => Operator::And,
        }
    }
}

/// The conditions of a repository, each with whatever the caller keeps for it.
#[derive(Debug)]
pub struct Selection<T> {
    conditions: Vec<(MatchCondition, T)>,
    operator: Operator,
}

/// Where wanted images may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// All tags have to be listed.
    pub listing: bool,
    /// These are asked for by name.
    pub named: BTreeSet<Exact>,
}

impl<T> Selection<T> {
    /// The conditions and how they are combined; without conditions everything is wanted.
    pub fn new(conditions: Vec<(MatchCondition, T)>, operator: Operator) -> Self {
        Selection {
            conditions,
            operator,
        }
    }

    /// Where to look.
    pub fn candidates(&self) -> Candidates {
        let exact = || {
            self.conditions
                .iter()
                .map(|(condition, _)| condition.exact())
        };
        let is_tag = |exact: &&Exact| matches!(exact, Exact::Tag(_));
        let is_vague = exact().any(|exact| exact.is_none());
        let named = match (self.operator, exact().flatten().find(is_tag)) {
            // What is not this tag cannot meet all conditions.
            (Operator::And, Some(tag)) => return Candidates::named([tag]),
            (Operator::And, None) if !is_vague => exact().flatten().take(1).collect(),
            (Operator::And, None) => Vec::new(),
            // The tags are in the list anyway.
            (Operator::Or, _) => exact()
                .flatten()
                .filter(|exact| !is_vague || !is_tag(exact))
                .collect(),
        };
        Candidates {
            listing: is_vague || self.conditions.is_empty(),
            ..Candidates::named(named)
        }
    }

    /// The tags that conditions name.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let exact = self.conditions.iter();
        let exact = exact.filter_map(|(condition, _)| condition.exact());
        exact.filter_map(|exact| match exact {
            Exact::Tag(tag) => Some(tag.as_str()),
            Exact::Digest(_) => None,
        })
    }

    /// What the caller keeps for the conditions that name this very digest.
    pub fn naming(&self, digest: &str) -> impl Iterator<Item = &T> {
        let names = move |exact: &Exact| matches!(exact, Exact::Digest(named) if named == digest);
        let naming = self.conditions.iter();
        let naming = naming.filter(move |(condition, _)| condition.exact().is_some_and(names));
        naming.map(|(_, kept)| kept)
    }

    /// Whether a tag may be wanted, as far as that can be said before its digest is known.
    pub fn may_want(&self, tag: &str) -> bool {
        let mut verdicts = self
            .conditions
            .iter()
            .map(|(condition, _)| condition.asks_digest() || condition.holds(Some(tag), ""));
        match self.operator {
            Operator::And => verdicts.all(|verdict| verdict),
            Operator::Or => self.conditions.is_empty() || verdicts.any(|verdict| verdict),
        }
    }

    /// What the caller keeps for the conditions that an image meets; none if it is not wanted.
    pub fn judge(&self, tag: Option<&str>, digest: &str) -> Option<Vec<&T>> {
        let met: Vec<&T> = self
            .conditions
            .iter()
            .filter(|(condition, _)| condition.holds(tag, digest))
            .map(|(_, kept)| kept)
            .collect();
        let wanted = match self.operator {
            Operator::And => met.len() == self.conditions.len(),
            Operator::Or => self.conditions.is_empty() || !met.is_empty(),
        };
        wanted.then_some(met)
    }
}

impl Candidates {
    fn named<'a>(named: impl IntoIterator<Item = &'a Exact>) -> Self {
        Candidates {
            listing: false,
            named: named.into_iter().cloned().collect(),
        }
    }
}
