//! Looks at all objects of a resource: one at a time, however often it is wanted; not at once again if
//! it could not be done; and where the reason is slight, no sooner than is in proportion to the work.

use crate::ledger::Place;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What could not be listed is listed again after this time, then after twice as long each time.
const AGAIN: Duration = Duration::from_secs(10);
/// The longest time until it is.
const LONGEST: Duration = Duration::from_secs(300);
/// How long it is waited for one that is under way.
const SOON: Duration = Duration::from_secs(5);
/// How many times as long as a look took nobody looks again for a slight reason.
const PROPORTION: u32 = 10;

/// All objects of a resource, or those of one namespace.
type Part = (Place, Option<String>);

/// The looks that are under way, and how the last ones went.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    /// Since when, and whether it is wanted again.
    under_way: HashMap<Part, (Instant, bool)>,
    /// When the last one of a resource ended, and how long it took.
    last: HashMap<Place, (Instant, Duration)>,
    /// How often in a row it could not be done.
    failures: HashMap<Part, u32>,
}

impl Sweeps {
    /// Whether a look may begin. If one is under way it is made once more when that one has ended.
    pub(crate) fn begin(&mut self, part: &Part, now: Instant) -> bool {
        if let Some((_, again)) = self.under_way.get_mut(part) {
            *again = true;
            return false;
        }
        self.under_way.insert(part.clone(), (now, false));
        true
    }

    /// A look has ended, well or not; after which time it is to be made again, if it is.
    pub(crate) fn end(&mut self, part: &Part, well: bool, now: Instant) -> Option<Duration> {
        let (since, again) = self.under_way.remove(part)?;
        if !well {
            let failures = self.failures.entry(part.clone()).or_default();
            *failures = failures.saturating_add(1);
            let wait = AGAIN.saturating_mul(1 << (*failures - 1).min(10));
            return Some(wait.min(LONGEST));
        }
        self.failures.remove(part);
        if part.1.is_none() {
            let took = now.saturating_duration_since(since);
            self.last.insert(part.0.clone(), (now, took));
        }
        again.then_some(Duration::ZERO)
    }

    /// For how long a resource is not to be looked at for a slight reason; none if it may be.
    pub(crate) fn rest(&self, place: &Place, now: Instant) -> Option<Duration> {
        if self.under_way.keys().any(|(one, _)| one == place) {
            return Some(SOON);
        }
        let (ended, took) = self.last.get(place)?;
        let until = *ended + took.saturating_mul(PROPORTION);
        Some(until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Nobody is interested in a resource any longer.
    pub(crate) fn forget(&mut self, place: &Place) {
        self.last.remove(place);
        self.failures.retain(|(one, _), _| one != place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Place {
        Place::new((String::new(), "pods".into()))
    }

    #[test]
    fn a_look_that_is_wanted_while_it_is_made_is_made_once_more() {
        let (mut sweeps, now) = (Sweeps::default(), Instant::now());
        let (all, one) = ((pods(), None), (pods(), Some("n".to_owned())));
        assert!(sweeps.begin(&all, now));
        assert!(sweeps.begin(&one, now), "a part of it");
        assert!(!sweeps.begin(&all, now));
        assert!(!sweeps.begin(&all, now));
        assert_eq!(sweeps.end(&all, true, now), Some(Duration::ZERO));
        assert_eq!(sweeps.end(&one, true, now), None);
        assert!(sweeps.begin(&all, now));
        assert_eq!(sweeps.end(&all, true, now), None);
    }

    #[test]
    fn what_cannot_be_listed_is_tried_less_and_less_often() {
        let (mut sweeps, now) = (Sweeps::default(), Instant::now());
        let part = (pods(), None);
        let mut fail = |well| {
            assert!(sweeps.begin(&part, now));
            sweeps.end(&part, well, now).map(|wait| wait.as_secs())
        };
        let waits: Vec<_> = (0..7).map(|_| fail(false)).collect();
        let expected = [10, 20, 40, 80, 160, 300, 300].map(Some);
        assert_eq!(waits, expected);
        assert_eq!(fail(true), None);
        assert_eq!(fail(false), Some(10), "it begins anew");
    }

    #[test]
    fn a_slight_reason_waits_in_proportion_to_the_work() {
        let (mut sweeps, start) = (Sweeps::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let (place, part) = (pods(), (pods(), None));
        assert_eq!(sweeps.rest(&place, start), None);
        assert!(sweeps.begin(&part, start));
        assert_eq!(sweeps.rest(&place, at(1)), Some(SOON), "it is under way");
        sweeps.end(&part, true, at(6));
        assert_eq!(sweeps.rest(&place, at(16)), Some(Duration::from_secs(50)));
        assert_eq!(sweeps.rest(&place, at(66)), None);
        sweeps.forget(&place);
        assert_eq!(sweeps.rest(&place, at(7)), None);
    }
}
