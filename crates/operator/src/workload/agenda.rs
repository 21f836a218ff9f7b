//! What is to be looked at, and when. A thing is handed out to one at a time; if it is wanted again
//! meanwhile, it is handed out again afterwards. What fails is tried again later and later, and stands
//! in nobody's way.

use muster_control::delay;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The first pause after a failure, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A list of things to do, each once.
#[derive(Debug)]
pub(crate) struct Agenda<K> {
    due: BTreeSet<(Instant, K)>,
    entries: HashMap<K, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    /// When it is wanted.
    at: Option<Instant>,
    /// Somebody is at it.
    busy: bool,
    failures: u32,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<K> {
    /// This, now.
    Do(K),
    /// Something, then.
    Wait(Instant),
    /// Nothing.
    Nothing,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Agenda {
            due: BTreeSet::new(),
            entries: HashMap::new(),
        }
    }
}

impl<K: Clone + Ord + Hash> Agenda<K> {
    /// Wants a thing looked at by a time, or earlier if that is wanted already.
    pub(crate) fn want(&mut self, key: K, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.at.is_some_and(|before| before <= at) {
            return;
        }
        if let Some(before) = entry.at.replace(at)
            && !entry.busy
        {
            self.due.remove(&(before, key.clone()));
        }
        if !entry.busy {
            self.due.insert((at, key));
        }
    }

    /// What is to be done at this time. It is busy until [`Agenda::done`].
    pub(crate) fn next(&mut self, now: Instant) -> Next<K> {
        let Some((at, key)) = self.due.first().cloned() else {
            return Next::Nothing;
        };
        if at > now {
            return Next::Wait(at);
        }
        self.due.pop_first();
        let entry = self.entries.entry(key.clone()).or_default();
        entry.at = None;
        entry.busy = true;
        Next::Do(key)
    }

    /// A thing was looked at; `again` says when to look again, or that it failed.
    pub(crate) fn done(&mut self, key: &K, outcome: Result<Option<Duration>, ()>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.busy = false;
        let again = match outcome {
            Ok(again) => {
                entry.failures = 0;
                again
            }
            Err(()) => {
                let pause = PAUSE.saturating_mul(1 << entry.failures.min(10));
                entry.failures = entry.failures.saturating_add(1);
                Some(pause.min(LONGEST_PAUSE))
            }
        };
        let again = again.map(|pause| delay::after(now, pause));
        match (entry.at, again) {
            (None, None) => drop(self.entries.remove(key)),
            (wanted, again) => {
                let at = wanted.into_iter().chain(again).min();
                entry.at = at;
                if let Some(at) = at {
                    self.due.insert((at, key.clone()));
                }
            }
        }
    }

    /// Whether nothing is to be done, now or later.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_handed_out_to_one_at_a_time() {
        let mut agenda = Agenda::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        agenda.want("a", later);
        agenda.want("a", now);
        agenda.want("a", later);
        assert_eq!(agenda.next(now), Next::Do("a"));
        assert_eq!(agenda.next(now), Next::Nothing);
        // Wanted while somebody is at it: again, afterwards.
        agenda.want("a", now);
        assert_eq!(agenda.next(now), Next::Nothing);
        agenda.want("b", later);
        assert_eq!(agenda.next(now), Next::Wait(later));
        agenda.done(&"a", Ok(None), now);
        assert_eq!(agenda.next(now), Next::Do("a"));
        agenda.done(&"a", Ok(None), now);
        assert_eq!(agenda.next(later), Next::Do("b"));
        agenda.done(&"b", Ok(Some(Duration::from_secs(1))), later);
        assert_eq!(
            agenda.next(later),
            Next::Wait(later + Duration::from_secs(1))
        );
    }

    #[test]
    fn what_fails_is_tried_later_and_later_and_no_longer_once_it_works() {
        let mut agenda = Agenda::default();
        let mut now = Instant::now();
        agenda.want("a", now);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(agenda.next(now), Next::Do("a"));
            agenda.done(&"a", Err(()), now);
            let Next::Wait(at) = agenda.next(now) else {
                panic!("it is tried again later")
            };
            pauses.push((at - now).as_secs());
            now = at;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        // News does not wait for the pause to end.
        assert_eq!(agenda.next(now), Next::Do("a"));
        agenda.done(&"a", Err(()), now);
        agenda.want("a", now);
        assert_eq!(agenda.next(now), Next::Do("a"));
        agenda.done(&"a", Ok(None), now);
        assert!(agenda.is_empty());
    }
}
