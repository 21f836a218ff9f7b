//! What a watcher asks for: a namespace, labels and a field. Judged here by rules of its own, so
//! that the server's selectors are not compared with themselves.

use super::model::Facts;
use super::{NAMES, NAMESPACES, Resource};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt;
use rand::rngs::StdRng;

pub(super) const COLORS: [&str; 3] = ["red", "green", "blue"];
pub(super) const TIERS: [&str; 2] = ["front", "back"];
pub(super) const REPOSITORIES: [&str; 3] = ["alpha", "beta", "gamma"];

/// A condition on one label; objects always have `color` and sometimes `tier`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Labels {
    All,
    Is(&'static str, &'static str),
    IsNot(&'static str, &'static str),
    Has(&'static str),
    Lacks(&'static str),
    OneOf(&'static str, [&'static str; 2]),
    NoneOf(&'static str, [&'static str; 2]),
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    All,
    Name(String),
    NotName(String),
    Repository(&'static str),
    NotRepository(&'static str),
}

/// Everything a watcher selects by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Selection {
    pub(super) namespace: Option<String>,
    pub(super) labels: Labels,
    pub(super) field: Field,
}

impl Selection {
    /// Selects everything.
    pub(super) fn everything() -> Selection {
        Selection {
            namespace: None,
            labels: Labels::All,
            field: Field::All,
        }
    }

    /// Any selection that makes sense for a resource.
    pub(super) fn random(random: &mut StdRng, resource: Resource) -> Selection {
        let namespace = random
            .random_bool(0.6)
            .then(|| format!("t-{}", random.random_range(0..NAMESPACES)));
        let color = COLORS[random.random_range(0..3)];
        let labels = match random.random_range(0..8) {
            0 => Labels::Is("color", color),
            1 => Labels::IsNot("color", color),
            2 => Labels::Has("tier"),
            3 => Labels::Lacks("tier"),
            4 => Labels::OneOf("color", [color, "none"]),
            5 => Labels::NoneOf("tier", ["front", "none"]),
            6 => Labels::IsNot("tier", "back"),
            _ => Labels::All,
        };
        let name = format!("o-{}", random.random_range(0..NAMES));
        let repository = REPOSITORIES[random.random_range(0..3)];
        let field = match (random.random_range(0..8), resource) {
            (0, _) => Field::Name(name),
            (1, _) => Field::NotName(name),
            (2..=4, Resource::Images | Resource::Sboms) => Field::Repository(repository),
            (5, Resource::Images | Resource::Sboms) => Field::NotRepository(repository),
            _ => Field::All,
        };
        Selection {
            namespace,
            labels,
            field,
        }
    }

    /// The path of the collection.
    pub(super) fn path(&self, resource: Resource) -> String {
        match &self.namespace {
            Some(namespace) => resource.collection(namespace),
            None => resource.everywhere(),
        }
    }

    /// The selectors as query parameters, each ended by `&`.
    pub(super) fn query(&self) -> String {
        let labels = match &self.labels {
            Labels::All => String::new(),
            Labels::Is(key, value) => format!("{key}={value}"),
            Labels::IsNot(key, value) => format!("{key}!={value}"),
            Labels::Has(key) => (*key).to_owned(),
            Labels::Lacks(key) => format!("!{key}"),
            Labels::OneOf(key, [a, b]) => format!("{key} in ({a},{b})"),
            Labels::NoneOf(key, [a, b]) => format!("{key} notin ({a},{b})"),
        };
        let field = match &self.field {
            Field::All => String::new(),
            Field::Name(name) => format!("metadata.name={name}"),
            Field::NotName(name) => format!("metadata.name!={name}"),
            Field::Repository(value) => format!("imageMetadata.repository={value}"),
            Field::NotRepository(value) => format!("imageMetadata.repository!={value}"),
        };
        let mut query = String::new();
        for (parameter, text) in [("labelSelector", labels), ("fieldSelector", field)] {
            if !text.is_empty() {
                let text = utf8_percent_encode(&text, NON_ALPHANUMERIC);
                query.push_str(&format!("{parameter}={text}&"));
            }
        }
        query
    }

    /// Whether an object is selected.
    pub(super) fn matches(&self, facts: &Facts) -> bool {
        let label = |key: &str| facts.labels.get(key).map(String::as_str);
        let labels = match &self.labels {
            Labels::All => true,
            Labels::Is(key, value) => label(key) == Some(value),
            Labels::IsNot(key, value) => label(key) != Some(value),
            Labels::Has(key) => label(key).is_some(),
            Labels::Lacks(key) => label(key).is_none(),
            Labels::OneOf(key, values) => label(key).is_some_and(|is| values.contains(&is)),
            Labels::NoneOf(key, values) => label(key).is_none_or(|is| !values.contains(&is)),
        };
        let field = match &self.field {
            Field::All => true,
            Field::Name(name) => facts.name == *name,
            Field::NotName(name) => facts.name != *name,
            Field::Repository(value) => facts.repository == *value,
            Field::NotRepository(value) => facts.repository != *value,
        };
        let namespace = self.namespace.as_ref();
        labels && field && namespace.is_none_or(|namespace| facts.namespace == *namespace)
    }
}
