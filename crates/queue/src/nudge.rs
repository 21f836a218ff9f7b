//! Words between replicas: how far each resource has come, told to whoever listens, so that nobody
//! waits for the next look at the database. A word is never believed, only looked up, and a lost
//! one costs latency and nothing else. So nothing here waits for NATS, and no trouble with it is
//! anybody else's.
//!
//! In both directions only the newest revision of a resource counts: a burst becomes one word, and
//! memory depends on the number of resources and never on that of words.

use crate::nats::NatsOptions;
use crate::nats::connect::connect;
use crate::queue::QueueError;
use async_nats::Client;
use async_nats::connection::State;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The last word of the subject; the prefix of all our subjects comes before it.
const SUBJECT: &str = "nudge";
/// A resource is told, and heard of, at most once in this time.
const PACE: Duration = Duration::from_millis(5);
/// Larger messages are none of ours.
const LARGEST: usize = 1024;
/// More resources than this at once are not spoken of.
const RESOURCES: usize = 1000;
/// Messages that wait to be read; beyond, they are lost.
const WAITING: usize = 1024;
/// How long a word may wait until the connection takes it.
const PATIENCE: Duration = Duration::from_secs(1);
/// A broken connection is made again this often, after pauses of this length; then it is given up
/// and started anew, with the credentials as they are then.
const RECONNECTS: usize = 10;
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// The pause before a connection is started anew.
const PAUSE: Duration = Duration::from_secs(2);

/// What one replica says to the others.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Word {
    resource: Arc<str>,
    revision: u64,
}

impl Word {
    /// The word in a message; none if it is anything else.
    fn read(payload: &[u8]) -> Option<Word> {
        if payload.len() > LARGEST {
            return None;
        }
        serde_json::from_slice(payload).ok()
    }
}

/// The newest revision of every resource that is still to be spoken of.
#[derive(Debug, Default)]
struct Newest(BTreeMap<Arc<str>, u64>);

impl Newest {
    fn take(&mut self, word: Word) {
        if let Some(known) = self.0.get_mut(&word.resource) {
            *known = word.revision.max(*known);
        } else if self.0.len() < RESOURCES {
            self.0.insert(word.resource, word.revision);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of it; nothing is left.
    fn empty(&mut self) -> impl Iterator<Item = Word> + use<> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.map(|(resource, revision)| Word { resource, revision })
    }
}

/// Why a conversation ended.
enum End {
    /// The connection is gone for good.
    Lost,
    /// Nothing will be written any more.
    Over,
}

/// Tells the other replicas what `written` tells, and calls `hear` with what they tell, until it is
/// stopped or `written` ends. NATS may be absent, go away and come back; nobody notices but by
/// latency.
///
/// ```text
/// nudge(options, store.written(), |resource, revision| store.nudge(resource, revision), stop)
/// ```
pub async fn nudge(
    options: NatsOptions,
    mut written: broadcast::Receiver<(Arc<str>, u64)>,
    hear: impl Fn(&Arc<str>, u64),
    stop: CancellationToken,
) {
    let talk = async {
        let mut failing = false;
        loop {
            match converse(&options, &mut written, &hear, &mut failing).await {
                Ok(End::Over) => return,
                Ok(End::Lost) => {}
                // Said once, not at every attempt.
                Err(error) if !failing => {
                    tracing::warn!(%error, "replicas cannot nudge each other and look for news themselves");
                    failing = true;
                }
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    };
    let _ = stop.run_until_cancelled(talk).await;
}

/// Talks and listens for as long as one connection lasts.
async fn converse(
    options: &NatsOptions,
    written: &mut broadcast::Receiver<(Arc<str>, u64)>,
    hear: &impl Fn(&Arc<str>, u64),
    failing: &mut bool,
) -> Result<End, QueueError> {
    let client = connect(options, |wanted| {
        // Our own words are no news to us.
        wanted
            .no_echo()
            .subscription_capacity(WAITING)
            .max_reconnects(RECONNECTS)
            .reconnect_delay_callback(|_| RECONNECT_PAUSE)
    })
    .await?;
    let subject = format!("{}.{SUBJECT}", options.prefix);
    let listening = client.subscribe(subject.clone()).await;
    let mut messages =
        listening.map_err(|error| QueueError::unavailable("listening for nudges", error))?;
    if std::mem::take(failing) {
        tracing::info!("replicas nudge each other again");
    }
    let (mut told, mut heard) = (Newest::default(), Newest::default());
    let mut next = Instant::now();
    loop {
        tokio::select! {
            word = written.recv() => match word {
                Ok((resource, revision)) => told.take(Word { resource, revision }),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(End::Over),
            },
            message = messages.next() => match message {
                Some(message) => {
                    if let Some(word) = Word::read(&message.payload) {
                        heard.take(word);
                    }
                }
                None => return Ok(End::Lost),
            },
            () = sleep_until(next), if !(told.is_empty() && heard.is_empty()) => {
                for word in heard.empty() {
                    hear(&word.resource, word.revision);
                }
                // What is to be told while the connection is away is told when it is back.
                if client.connection_state() != State::Connected {
                    next = Instant::now() + RECONNECT_PAUSE;
                    continue;
                }
                for word in told.empty() {
                    if !publish(&client, &subject, &word).await {
                        break;
                    }
                }
                next = Instant::now() + PACE;
            }
        }
    }
}

/// Says a word; whether the connection took it in time, or may be stuck.
async fn publish(client: &Client, subject: &str, word: &Word) -> bool {
    let Ok(payload) = serde_json::to_vec(word) else {
        return true;
    };
    let publish = client.publish(subject.to_owned(), payload.into());
    timeout(PATIENCE, publish).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(resource: &str, revision: u64) -> Word {
        Word {
            resource: resource.into(),
            revision,
        }
    }

    #[test]
    fn only_words_are_read() {
        let large = format!(
            r#"{{"resource":"pods","revision":7,"more":"{}"}}"#,
            "x".repeat(LARGEST)
        );
        for (payload, read) in [
            (r#"{"resource":"pods","revision":7}"#, Some(word("pods", 7))),
            (
                r#"{"resource":"pods","revision":7,"since":"later"}"#,
                Some(word("pods", 7)),
            ),
            (r#"{"resource":"pods","revision":-7}"#, None),
            (r#"{"resource":"pods"}"#, None),
            (r#""pods""#, None),
            ("", None),
            ("\u{0}\u{1}", None),
            (&large, None),
        ] {
            assert_eq!(Word::read(payload.as_bytes()), read, "{payload}");
        }
    }

    #[test]
    fn a_burst_becomes_the_newest_word_of_each_resource() {
        let mut newest = Newest::default();
        for revision in [3, 9, 5] {
            newest.take(word("pods", revision));
            newest.take(word("jobs", revision + 1));
        }
        let words: Vec<Word> = newest.empty().collect();
        assert_eq!(words, [word("jobs", 10), word("pods", 9)]);
        assert!(newest.is_empty());
    }

    #[test]
    fn resources_that_somebody_invents_do_not_fill_the_memory() {
        let mut newest = Newest::default();
        for number in 0..10 * RESOURCES {
            newest.take(word(&format!("r{number}"), 1));
        }
        assert_eq!(newest.0.len(), RESOURCES);
    }
}
