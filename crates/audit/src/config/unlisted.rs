//! Resources that cannot be listed, for want of a right or of an answer. It is tried again for as long
//! as it takes, and said once: in the log, in what is told of each kind, and by a metric.

use super::{ConfigAuditor, State, Task};
use crate::ledger::Place;
use std::time::Duration;

/// Changes that come together are told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// How much of a reason is told, in bytes.
const LONGEST: usize = 500;

impl ConfigAuditor {
    /// A resource could not be listed, in a namespace or in all, or it could.
    pub(super) fn unlisted(&self, place: &Place, namespace: Option<&str>, why: Option<&str>) {
        let is_news = self.state().note_unlisted(place, namespace, why);
        if !is_news {
            return;
        }
        let (group, resource) = (&place.0, &place.1);
        match why {
            Some(why) => {
                tracing::warn!(
                    why,
                    group,
                    resource,
                    namespace,
                    "cannot list what is to be checked"
                );
            }
            None => tracing::info!(
                group,
                resource,
                namespace,
                "what is to be checked is listed again"
            ),
        }
        self.want(Task::Tell, TOGETHER);
    }
}

impl State {
    /// Notes why a resource could not be listed, or that it could; says whether that is news.
    fn note_unlisted(&mut self, place: &Place, namespace: Option<&str>, why: Option<&str>) -> bool {
        let part = (place.clone(), namespace.map(str::to_owned));
        match why {
            Some(why) => {
                let end = why.floor_char_boundary(LONGEST);
                let why = why.get(..end).unwrap_or_default().to_owned();
                let before = self.unlisted.insert(part, why.clone());
                before.is_none_or(|before| before != why)
            }
            None => self.unlisted.remove(&part).is_some(),
        }
    }

    /// Forgets what nobody wants to list any longer.
    pub(super) fn forget_unlisted(&mut self) {
        let desks = &self.desks;
        self.unlisted.retain(|(place, _), _| {
            let desk = desks.get(place);
            desk.is_some_and(|desk| desk.sheet.is_some())
        });
    }

    /// Why a resource cannot be listed.
    pub(super) fn why_unlisted(&self, place: &Place) -> Option<&str> {
        let mut parts = self.unlisted.iter();
        let part = parts.find(|((other, _), _)| other == place);
        part.map(|(_, why)| why.as_str())
    }

    /// How many resources cannot be listed that there are policies about.
    pub(super) fn count_unlisted(&self) -> usize {
        let judged = self.desks.iter().filter(|(_, desk)| desk.sheet.is_some());
        judged
            .filter(|(place, _)| self.why_unlisted(place).is_some())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::desks;

    #[test]
    fn what_cannot_be_listed_is_news_once_and_until_it_can() {
        let policies = &[["a", "Secret", "1"]];
        let mut state = State {
            desks: desks(policies, "1", &["v1 Secret", "v1 Pod"]),
            ..State::default()
        };
        let place = |name: &str| Place::new((String::new(), name.to_owned()));
        let secrets = place("secrets");
        for (namespace, why, is_news, count) in [
            (None, None, false, 0),
            (None, Some("forbidden"), true, 1),
            (None, Some("forbidden"), false, 1),
            (None, Some("gone"), true, 1),
            // Each namespace is listed by itself.
            (Some("a"), None, false, 1),
            (Some("a"), Some("gone"), true, 1),
            (None, None, true, 1),
            (None, None, false, 1),
            (Some("a"), None, true, 0),
        ] {
            let told = state.note_unlisted(&secrets, namespace, why);
            assert_eq!(told, is_news, "{namespace:?} {why:?}");
            assert_eq!(state.count_unlisted(), count, "{namespace:?} {why:?}");
        }
        // What no policy is about does not count, and is forgotten.
        let long = "é".repeat(LONGEST);
        for name in ["secrets", "pods", "gone"] {
            assert!(state.note_unlisted(&place(name), None, Some(&long)));
        }
        assert_eq!(state.count_unlisted(), 1);
        state.forget_unlisted();
        assert_eq!(state.unlisted.len(), 1);
        let why = state.why_unlisted(&secrets).unwrap();
        assert!((1..=LONGEST).contains(&why.len()));
    }
}
