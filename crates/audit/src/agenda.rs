//! What is to be done, and when. The same thing is on the agenda once, however often it is wanted; it
//! is done as soon as anybody wants it.

use crate::ledger::Place;
use muster_control::delay::bounded;
use muster_policy::GroupVersionKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Ask the cluster what it serves.
    Discover,
    /// Find out who is interested in what.
    Settle,
    /// Look at all objects of a resource, of one namespace or of all.
    Sweep(Place, Option<String>),
    /// Look at one object again, whatever is known of it.
    Look(String),
    /// Look at one object again, as something could not be done.
    Retry(String),
    /// Delete the reports on what nobody is interested in.
    Leave,
    /// Ask those again that read a kind.
    Touch(GroupVersionKind),
    /// Prepare a policy again, as it could not be fetched.
    Prepare(crate::note::Key),
    /// Ask a policy server again about everything that it judged by a policy.
    Reask(crate::note::Key),
    /// Ask it again about what it could not judge.
    Recheck(crate::note::Key),
    /// Say of all reports on a resource that they are not current, if it still cannot be listed.
    Doubt(Place),
    /// Look at everything.
    Verify,
}

/// What is to be done, and when.
#[derive(Debug)]
pub struct Agenda<T = Task> {
    tasks: Mutex<Tasks<T>>,
    news: Notify,
}

#[derive(Debug)]
struct Tasks<T> {
    due: BTreeMap<T, Instant>,
    order: BTreeSet<(Instant, T)>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        let tasks = Tasks {
            due: BTreeMap::new(),
            order: BTreeSet::new(),
        };
        Agenda {
            tasks: Mutex::new(tasks),
            news: Notify::new(),
        }
    }
}

impl<T: Clone + Ord> Agenda<T> {
    /// Wants something done after a while, or earlier if somebody wants it earlier.
    pub fn want(&self, task: T, after: Duration) {
        let now = Instant::now();
        let due = now.checked_add(bounded(after)).unwrap_or(now);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tasks.due.get(&task).copied();
        if before.is_none_or(|before| due < before) {
            if let Some(before) = before {
                tasks.order.remove(&(before, task.clone()));
            }
            tasks.order.insert((due, task.clone()));
            tasks.due.insert(task, due);
        }
        drop(tasks);
        self.news.notify_one();
    }

    /// How much is wanted within a time.
    pub fn due_within(&self, time: Duration) -> usize {
        let now = Instant::now();
        let until = now.checked_add(bounded(time)).unwrap_or(now);
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = tasks.order.iter();
        tasks.take_while(|(at, _)| *at <= until).count()
    }

    /// Takes what is due, the longest due first; waits for it.
    pub async fn next(&self) -> T {
        loop {
            let first = {
                let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
                let first = tasks.order.first().map(|(due, _)| *due);
                if first.is_some_and(|due| due <= Instant::now())
                    && let Some((_, task)) = tasks.order.pop_first()
                {
                    tasks.due.remove(&task);
                    if !tasks.order.is_empty() {
                        // Another who waits has to know what is next now.
                        self.news.notify_one();
                    }
                    return task;
                }
                first
            };
            match first {
                Some(due) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(due) => {}
                        () = self.news.notified() => {}
                    }
                }
                None => self.news.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_wanted_after_the_longest_time_there_is_waits() {
        let agenda = Agenda::default();
        agenda.want(Task::Verify, Duration::MAX);
        agenda.want(Task::Settle, Duration::ZERO);
        assert_eq!(agenda.due_within(Duration::MAX), 2);
        assert_eq!(agenda.next().await, Task::Settle);
        assert_eq!(agenda.due_within(Duration::from_secs(86_400)), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wanted_twice_is_done_once_and_as_early_as_wanted() {
        let agenda = Agenda::default();
        let seconds = Duration::from_secs;
        agenda.want(Task::Verify, seconds(10));
        agenda.want(Task::Settle, seconds(5));
        agenda.want(Task::Verify, seconds(1));
        agenda.want(Task::Settle, seconds(20));
        assert_eq!(agenda.due_within(seconds(1)), 1);
        let begun = Instant::now();
        assert_eq!(agenda.next().await, Task::Verify);
        assert_eq!(begun.elapsed(), seconds(1));
        assert_eq!(agenda.next().await, Task::Settle);
        assert_eq!(begun.elapsed(), seconds(5));
        assert_eq!(agenda.due_within(seconds(1000)), 0);
    }
}
