//! The contract of a queue, and the values that cross it.
//!
//! A message is published under a subject with an id. It is given to one worker at a time, who
//! has it for the length of a lease, can prolong that, and says in the end what became of it. A
//! worker that says nothing loses it to another when the lease is over. After the last try, and
//! when a worker says that trying is no use, the message is laid aside as dead with the reason.
//! Messages come in no promised order.
//!
//! The same id is not accepted twice on a subject: never while its message waits or is being
//! worked on, and not within a window after it was published.
//!
//! What is published is kept, and what is in the file is durable when the call returns. A NATS
//! server writes what it hears to its disk a little later: one that is killed may give out again
//! what was acknowledged a moment before, and it forgets the window of finished messages.

use async_trait::async_trait;
use bytes::Bytes;
use std::fmt;
use std::time::{Duration, SystemTime};

/// How a queue behaves; the same for every process that uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long a worker has a message before another may get it.
    pub lease: Duration,
    /// How often a message is given out before it is laid aside.
    pub tries: u32,
    /// For how long after its publication an id is refused, even if its message is finished.
    pub window: Duration,
    /// The largest payload in bytes.
    pub largest: usize,
    /// How many dead messages are kept; the oldest go first.
    pub dead: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease: Duration::from_secs(60),
            tries: 5,
            window: Duration::from_secs(120),
            largest: 512 * 1024,
            dead: 10_000,
        }
    }
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The message is kept and will be given out.
    Accepted,
    /// There is or was one with that id.
    Duplicate,
}

/// A message in the hands of a worker.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its subject.
    pub subject: String,
    /// Its id.
    pub id: String,
    /// Its content.
    pub payload: Bytes,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// Whether there is no further one.
    pub last: bool,
    pub(crate) receipt: Receipt,
}

/// What an implementation knows a delivery by.
#[derive(Clone)]
pub(crate) enum Receipt {
    Embedded { message: i64, lease: i64 },
    Nats(std::sync::Arc<async_nats::jetstream::Message>),
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Receipt::Embedded { message, lease } => write!(f, "{message}/{lease}"),
            Receipt::Nats(_) => f.write_str("nats"),
        }
    }
}

/// A message that was laid aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Dead {
    /// Its subject.
    pub subject: String,
    /// Its id.
    pub id: String,
    /// Its content.
    pub payload: Bytes,
    /// Why it was laid aside.
    pub reason: String,
    /// How often it was given out.
    pub tries: u32,
    /// When it was laid aside.
    pub at: SystemTime,
}

/// How much there is to do, and how much was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that nobody works on.
    pub waiting: u64,
    /// Messages in the hands of workers. NATS counts those here too that a worker gave back and
    /// whose time has not come.
    pub running: u64,
    /// Messages that were laid aside and are still kept.
    pub dead: u64,
}

/// Why a queue did not do as it was told.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    /// A payload is over the limit.
    #[error("publishing {id:?} to {subject}: {size} bytes, at most {limit} are taken")]
    TooLarge {
        /// The subject.
        subject: String,
        /// The id.
        id: String,
        /// The payload's size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A subject or an id cannot be used.
    #[error("{attempt}: {reason}")]
    Malformed {
        /// What was being done.
        attempt: String,
        /// What is wrong.
        reason: String,
    },
    /// The lease was over, and the message is finished or with another worker.
    #[error("message {id:?} of {subject} is no longer in our hands")]
    Lost {
        /// The subject.
        subject: String,
        /// The id.
        id: String,
    },
    /// The queue cannot be reached or has trouble; later it may work.
    #[error("{attempt}: {reason}")]
    Unavailable {
        /// What was being done.
        attempt: String,
        /// What happened.
        reason: String,
    },
    /// The queue cannot be opened as it is.
    #[error("{attempt}: {reason}")]
    Unusable {
        /// What was being done.
        attempt: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The queue was closed.
    #[error("the queue is closed")]
    Closed,
}

impl QueueError {
    /// Whether the same may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, QueueError::Unavailable { .. })
    }

    pub(crate) fn unavailable(attempt: &str, reason: impl ToString) -> QueueError {
        QueueError::Unavailable {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn lost(delivery: &Delivery) -> QueueError {
        QueueError::Lost {
            subject: delivery.subject.clone(),
            id: delivery.id.clone(),
        }
    }
}

/// A work queue.
#[async_trait]
pub trait Queue: Send + Sync + fmt::Debug {
    /// Adds a message; when this returns it is kept for good.
    async fn publish(
        &self,
        subject: &str,
        id: &str,
        payload: Bytes,
    ) -> Result<Published, QueueError>;

    /// Takes up to `limit` messages, and waits up to `wait` for the first of them.
    async fn pull(
        &self,
        subject: &str,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, QueueError>;

    /// The work is done. Where the lease was over the message may be with another worker: then
    /// this is refused as [`QueueError::Lost`], or it still counts.
    async fn ack(&self, delivery: &Delivery) -> Result<(), QueueError>;

    /// The work failed and is to be tried again after a while. The last try's message is laid
    /// aside with the reason.
    async fn nak(
        &self,
        delivery: &Delivery,
        delay: Duration,
        reason: &str,
    ) -> Result<(), QueueError>;

    /// The work goes on: the lease begins anew.
    async fn progress(&self, delivery: &Delivery) -> Result<(), QueueError>;

    /// Trying again is no use: the message is laid aside with the reason.
    async fn term(&self, delivery: &Delivery, reason: &str) -> Result<(), QueueError>;

    /// How much there is to do, and how much was given up.
    async fn depth(&self, subject: &str) -> Result<Depth, QueueError>;

    /// The messages that were laid aside, the oldest first.
    async fn dead(&self, subject: &str, limit: usize) -> Result<Vec<Dead>, QueueError>;
}

/// The longest id in bytes.
const LONGEST: usize = 512;

/// Refuses what one of the implementations could not keep.
pub(crate) fn check(subject: &str, id: &str, size: usize, limit: usize) -> Result<(), QueueError> {
    check_subject(subject)?;
    let reason = if id.is_empty() || id.len() > LONGEST {
        format!("an id has from 1 to {LONGEST} bytes")
    } else if id.chars().any(char::is_control) || id.trim() != id {
        "an id has no control characters and no blanks around it".into()
    } else if size > limit {
        let (subject, id) = (subject.into(), id.into());
        return Err(QueueError::TooLarge {
            subject,
            id,
            size,
            limit,
        });
    } else {
        return Ok(());
    };
    let attempt = format!("publishing to {subject}");
    Err(QueueError::Malformed { attempt, reason })
}

/// A subject is words with dots between them.
pub(crate) fn check_subject(subject: &str) -> Result<(), QueueError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let word = |word: &str| !word.is_empty() && word.bytes().all(plain);
    match subject.len() <= 200 && subject.split('.').all(word) {
        true => Ok(()),
        false => Err(QueueError::Malformed {
            attempt: format!(
                "using the subject {:?}",
                subject.chars().take(200).collect::<String>()
            ),
            reason: "a subject is words of letters, digits, - and _ with dots between them".into(),
        }),
    }
}

/// A reason as it is kept: one line, not too long.
pub(crate) fn one_line(reason: &str) -> String {
    let printable = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(1000).collect::<String>().trim().to_string()
}

/// Why a message is dead that nobody said anything about.
pub(crate) fn unfinished(tries: u32, last: Option<&str>) -> String {
    match last.filter(|reason| !reason.is_empty()) {
        Some(last) => format!("not finished in {tries} tries; last: {last}"),
        None => format!("not finished in {tries} tries; the workers were lost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_queue_could_keep_is_refused() {
        for (subject, id, size, fine) in [
            ("a.b-c.d_1", "generateSBOM/uid/image:1", 10, true),
            ("a", "x", 0, true),
            ("", "x", 0, false),
            ("a..b", "x", 0, false),
            ("a.*", "x", 0, false),
            ("a.>", "x", 0, false),
            ("a b", "x", 0, false),
            ("a", "", 0, false),
            ("a", " x", 0, false),
            ("a", "x\r\nInjected: 1", 0, false),
            ("a", &"x".repeat(513), 0, false),
            ("a", "x", 11, false),
        ] {
            assert_eq!(
                check(subject, id, size, 10).is_ok(),
                fine,
                "{subject:?} {id:?} {size}"
            );
        }
        let error = check("a.b", "job/1", 11, 10)
            .expect_err("too large")
            .to_string();
        assert!(
            error.contains("job/1") && error.contains("a.b") && error.contains("10"),
            "{error}"
        );
    }

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(one_line("a\nb\t\u{1b}c "), "a b  c");
        assert_eq!(one_line(&"x".repeat(5000)).len(), 1000);
    }
}
