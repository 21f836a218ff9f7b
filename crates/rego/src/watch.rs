//! Evaluations are watched. The interpreter looks at the clock between its steps, but a step may be one
//! comparison or one function that takes hours, and a thread cannot be stopped. So every caller has a
//! thread of its own that evaluates for it, which is kept and used again; one that does not answer in time
//! is left behind, and the caller goes on with another.
//!
//! Threads that were left behind still run, so there are never many: what had to be left is not evaluated
//! again (that is for [`crate::Program`] to see to), and while [`MOST_LEFT`] of them run nothing is
//! evaluated at all. As each caller waits for one evaluation at a time, there are at most as many as that
//! and one for each caller. A panic ends an evaluation, not its thread.

use crate::error::AskError;
use regorus::Value;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How many threads that were left behind may run.
pub(crate) const MOST_LEFT: usize = 4;
/// The stack that every thread has, in bytes. Only what is used of it is ever there.
const STACK: usize = 4 * 1024 * 1024;
/// Waiting is counted in turns, so that a process that was stopped for a while does not count it.
const TURN: Duration = Duration::from_millis(250);

/// The values of the rules, or why there are none.
pub(crate) type Answer = Result<Vec<Value>, AskError>;
type Job = Box<dyn FnOnce() -> Answer + Send>;

/// How many threads were left behind and still run.
static LEFT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread that evaluates for this one.
    static MINE: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

struct Worker {
    jobs: SyncSender<Job>,
    answers: Receiver<Answer>,
    stack: usize,
    is_left: Arc<AtomicBool>,
    left: &'static AtomicUsize,
}

/// Evaluates on a thread with such a stack; nothing, if that takes longer than the time.
pub(crate) fn evaluate(
    stack: usize,
    time: Duration,
    job: impl FnOnce() -> Answer + Send + 'static,
) -> Option<Answer> {
    counted(&LEFT, stack, time, job)
}

fn counted(
    left: &'static AtomicUsize,
    stack: usize,
    time: Duration,
    job: impl FnOnce() -> Answer + Send + 'static,
) -> Option<Answer> {
    if left.load(Ordering::Relaxed) >= MOST_LEFT {
        let why = ": too many evaluations were begun that do not end";
        return Some(Err(AskError::Unable(why.into())));
    }
    MINE.with_borrow_mut(|mine| {
        let worker = match mine.take().filter(|worker| worker.stack >= stack) {
            Some(worker) => worker,
            None => match Worker::start(left, stack.max(STACK)) {
                Ok(worker) => worker,
                Err(error) => return Some(Err(AskError::Unable(format!(" now: {error}")))),
            },
        };
        let answer = worker.ask(Box::new(job), time);
        match answer {
            Some(_) => *mine = Some(worker),
            None => worker.leave(),
        }
        answer
    })
}

impl Worker {
    fn start(left: &'static AtomicUsize, stack: usize) -> std::io::Result<Worker> {
        let (jobs, waiting) = sync_channel::<Job>(1);
        let (done, answers) = sync_channel::<Answer>(1);
        let is_left = Arc::new(AtomicBool::new(false));
        let leaving = Leaving(is_left.clone(), left);
        let work = move || {
            let _leaving = leaving;
            while let Ok(job) = waiting.recv() {
                let unable = |_| Err(AskError::Unable(": it made the interpreter fail".into()));
                let answer = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(unable);
                if done.send(answer).is_err() {
                    break;
                }
            }
        };
        let builder = std::thread::Builder::new().name("rego".into());
        builder.stack_size(stack).spawn(work)?;
        Ok(Worker {
            jobs,
            answers,
            stack,
            is_left,
            left,
        })
    }

    fn ask(&self, job: Job, time: Duration) -> Option<Answer> {
        let gone = || Some(Err(AskError::Unable(String::new())));
        if self.jobs.send(job).is_err() {
            return gone();
        }
        let turns = time.as_millis() / TURN.as_millis() + 1;
        for _ in 0..turns {
            match self.answers.recv_timeout(TURN) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return gone(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    fn leave(self) {
        // It is counted before it can see that nobody waits for it.
        self.left.fetch_add(1, Ordering::Relaxed);
        self.is_left.store(true, Ordering::Release);
    }
}

/// What a thread does last.
struct Leaving(Arc<AtomicBool>, &'static AtomicUsize);

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.0.load(Ordering::Acquire) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::current;
    use std::time::Instant;

    /// Not the process's, which others count on.
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// Who evaluates for this thread.
    fn who() -> String {
        let answer = counted(&COUNT, 0, Duration::from_secs(60), || {
            Ok(vec![format!("{:?}", current().id()).into()])
        });
        answer.unwrap().unwrap().remove(0).to_string()
    }

    #[test]
    fn a_thread_is_used_again_unless_it_does_not_answer_and_few_are_left_behind() {
        let first = who();
        assert_eq!(who(), first);
        assert_ne!(first, format!("{:?}", current().id()));
        // Whoever panics only ends the evaluation.
        let panicked = counted(&COUNT, 0, Duration::from_secs(60), || panic!("on purpose"));
        assert!(matches!(panicked, Some(Err(AskError::Unable(_)))));
        assert_eq!(who(), first);
        // One that needs a larger stack gets another thread, which is good for the others too.
        let deep = counted(
            &COUNT,
            STACK + 1,
            Duration::from_secs(60),
            || Ok(Vec::new()),
        );
        assert_eq!(deep, Some(Ok(Vec::new())));
        let second = who();
        assert_ne!(second, first);
        assert_eq!(who(), second);
        let mut ends = Vec::new();
        for _ in 0..MOST_LEFT {
            let (end, wait) = channel::<()>();
            ends.push(end);
            let asked = counted(&COUNT, 0, Duration::from_millis(1), move || {
                let _ = wait.recv();
                Ok(Vec::new())
            });
            assert_eq!(asked, None);
        }
        let asked = counted(&COUNT, 0, Duration::from_secs(60), || Ok(Vec::new()));
        assert!(matches!(asked, Some(Err(AskError::Unable(_)))), "{asked:?}");
        // Once they end after all, there is room again.
        drop(ends);
        let start = Instant::now();
        while COUNT.load(Ordering::Relaxed) > 0 {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        assert_ne!(who(), second);
    }
}
