//! Evaluations are watched. The interpreter looks at the clock between its steps, but a step may be one
//! comparison or one function that takes hours, and a thread cannot be stopped. So every caller has a
//! thread of its own that evaluates for it, which is kept and used again; one that does not answer in time
//! is left running, and the caller goes on with another.
//!
//! What had to be left is not evaluated again (that is for [`crate::Program`] to see to), and an owner with
//! too many evaluations [left running](crate::left) evaluates nothing more until one ends. A panic ends an
//! evaluation, not its thread.

use crate::error::AskError;
use crate::left::{LEFT, Left, Owner};
use regorus::Value;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The stack that every thread has, in bytes. Only what is used of it is ever there.
const STACK: usize = 4 * 1024 * 1024;
/// Waiting is counted in turns, so that a process that was stopped for a while does not count it.
const TURN: Duration = Duration::from_millis(250);

/// The values of the rules, or why there are none.
pub(crate) type Answer = Result<Vec<Value>, AskError>;
type Job = Box<dyn FnOnce() -> Answer + Send>;

thread_local! {
    /// The thread that evaluates for this one.
    static MINE: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

struct Worker {
    jobs: SyncSender<Job>,
    answers: Receiver<Answer>,
    stack: usize,
    left_by: Arc<OnceLock<Owner>>,
    left: &'static Left,
}

/// Evaluates for an owner on a thread with such a stack; nothing, if that takes longer than the time.
pub(crate) fn evaluate(
    owner: &Owner,
    stack: usize,
    time: Duration,
    job: impl FnOnce() -> Answer + Send + 'static,
) -> Option<Answer> {
    counted(&LEFT, owner, stack, time, job)
}

fn counted(
    left: &'static Left,
    owner: &Owner,
    stack: usize,
    time: Duration,
    job: impl FnOnce() -> Answer + Send + 'static,
) -> Option<Answer> {
    if let Some(why) = left.refusal(owner) {
        return Some(Err(AskError::Unavailable(why.into())));
    }
    MINE.with_borrow_mut(|mine| {
        let worker = match mine.take().filter(|worker| worker.stack >= stack) {
            Some(worker) => worker,
            None => match Worker::start(left, stack.max(STACK)) {
                Ok(worker) => worker,
                Err(error) => {
                    let why = format!("cannot start a thread: {error}");
                    return Some(Err(AskError::Unavailable(why)));
                }
            },
        };
        let answer = worker.ask(Box::new(job), time);
        match answer {
            Some(_) => *mine = Some(worker),
            None => worker.leave(owner),
        }
        answer
    })
}

impl Worker {
    fn start(left: &'static Left, stack: usize) -> std::io::Result<Worker> {
        let (jobs, waiting) = sync_channel::<Job>(1);
        let (done, answers) = sync_channel::<Answer>(1);
        let left_by = Arc::new(OnceLock::new());
        let leaving = Leaving(left_by.clone(), left);
        let work = move || {
            let _leaving = leaving;
            while let Ok(job) = waiting.recv() {
                let panicked = |_| Err(AskError::Unavailable("the interpreter panicked".into()));
                let answer = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(panicked);
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
            left_by,
            left,
        })
    }

    fn ask(&self, job: Job, time: Duration) -> Option<Answer> {
        let gone = || {
            let why = "the thread of the evaluation ended".into();
            Some(Err(AskError::Unavailable(why)))
        };
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

    fn leave(self, owner: &Owner) {
        // It is counted before the thread can see that no caller waits for it.
        self.left.add(owner, 1);
        let _ = self.left_by.set(owner.clone());
    }
}

/// What a thread does last.
struct Leaving(Arc<OnceLock<Owner>>, &'static Left);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(owner) = self.0.get() {
            self.1.remove(owner, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left::MAX_LEFT_EACH;
    use std::sync::mpsc::channel;
    use std::thread::current;
    use std::time::Instant;

    /// Not the process's, which others count on.
    static COUNT: Left = Left::new();
    const LONG: Duration = Duration::from_secs(60);

    fn tenant(name: &str) -> Owner {
        Owner::Tenant(name.into())
    }

    /// The thread that evaluates for this one.
    fn who(owner: &Owner) -> String {
        let answer = counted(&COUNT, owner, 0, LONG, || {
            Ok(vec![format!("{:?}", current().id()).into()])
        });
        answer.unwrap().unwrap().remove(0).to_string()
    }

    #[test]
    fn a_thread_is_used_again_unless_it_does_not_answer_and_few_are_left_running() {
        let (one, other) = (tenant("one"), tenant("other"));
        let first = who(&one);
        assert_eq!(who(&other), first);
        assert_ne!(first, format!("{:?}", current().id()));
        // A panic only ends the evaluation, and is no failure of the policy.
        let panicked = counted(&COUNT, &one, 0, LONG, || panic!("on purpose"));
        assert!(matches!(panicked, Some(Err(AskError::Unavailable(_)))));
        assert_eq!(who(&one), first);
        // One that needs a larger stack gets another thread, which is good for the others too.
        let deep = counted(&COUNT, &one, STACK + 1, LONG, || Ok(Vec::new()));
        assert_eq!(deep, Some(Ok(Vec::new())));
        let second = who(&one);
        assert_ne!(second, first);
        assert_eq!(who(&one), second);
        let mut ends = Vec::new();
        for _ in 0..MAX_LEFT_EACH {
            let (end, wait) = channel::<()>();
            ends.push(end);
            let asked = counted(&COUNT, &one, 0, Duration::from_millis(1), move || {
                let _ = wait.recv();
                Ok(Vec::new())
            });
            assert_eq!(asked, None);
        }
        let ask = |owner: &Owner| counted(&COUNT, owner, 0, LONG, || Ok(Vec::new()));
        let refused = ask(&one);
        assert!(
            matches!(refused, Some(Err(AskError::Unavailable(_)))),
            "{refused:?}"
        );
        // Other owners are evaluated as before.
        assert_eq!(ask(&other), Some(Ok(Vec::new())));
        assert_eq!(ask(&Owner::Installation("checks")), Some(Ok(Vec::new())));
        // Once they end after all, there is room again.
        drop(ends);
        let start = Instant::now();
        while COUNT.refusal(&one).is_some() {
            assert!(start.elapsed() < LONG);
            std::thread::yield_now();
        }
        assert_ne!(who(&one), second);
    }
}
