//! Whoever works on objects: a bounded number at once, each with a short queue of its own. What is about
//! the same object goes to the same one, so that it is done in the order in which it was handed over.

use muster_policy::request;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many objects are worked on at once. Most of them wait for the API server.
const WORKERS: usize = 32;
/// How many objects wait for each of them.
const WAITING: usize = 8;

/// The workers and their queues.
#[derive(Debug)]
pub(crate) struct Crew<J> {
    queues: Vec<mpsc::Sender<J>>,
    idle: Mutex<Vec<mpsc::Receiver<J>>>,
    waiting: AtomicUsize,
}

impl<J> Crew<J> {
    /// A crew that begins to work when it is run.
    pub(crate) fn new() -> Crew<J> {
        let (queues, idle) = (0..WORKERS).map(|_| mpsc::channel(WAITING)).unzip();
        Crew {
            queues,
            idle: Mutex::new(idle),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Works until `stop`. It is run once.
    pub(crate) async fn run<W: Future<Output = ()>>(
        &self,
        work: impl Fn(J) -> W,
        stop: &CancellationToken,
    ) {
        let work = &work;
        let queues = self.take_queues().into_iter();
        let workers = queues.map(|queue| self.work_off(queue, work, stop));
        futures::future::join_all(workers).await;
    }

    /// Works off one queue until `stop`.
    pub(crate) async fn work_off<W: Future<Output = ()>>(
        &self,
        mut queue: mpsc::Receiver<J>,
        work: &impl Fn(J) -> W,
        stop: &CancellationToken,
    ) {
        loop {
            let job = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                job = queue.recv() => job,
            };
            let Some(job) = job else { return };
            // Whoever takes over finds what was not finished.
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = work(job) => {}
            }
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The queues, for whoever works them off; each can be had once.
    pub(crate) fn take_queues(&self) -> Vec<mpsc::Receiver<J>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *idle)
    }

    /// Hands over what is to be done about an object; waits while there is too much to do.
    pub(crate) async fn hand(&self, object: &str, job: J) {
        let worker = request::hash(object.as_bytes()) % self.queues.len() as u64;
        let Some(worker) = self.queues.get(worker as usize) else {
            return;
        };
        // Counted once there is room: whoever is called off while it waits for some leaves nothing behind.
        let Ok(room) = worker.reserve().await else {
            return;
        };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        room.send(job);
    }

    /// How much is handed over and not yet done.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn what_is_called_off_before_it_is_handed_over_is_not_waited_for() {
        let crew = Crew::new();
        for job in 0..WAITING {
            assert_eq!(crew.hand("same", job).now_or_never(), Some(()));
        }
        assert_eq!(crew.hand("same", 99).now_or_never(), None);
        assert_eq!(crew.waiting(), WAITING);
    }
}
