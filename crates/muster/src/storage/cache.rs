//! Questions to kube-apiserver. None waits for ever, and answers are believed for a little while, so
//! that a busy client costs one question and not one per request. Many who ask the same at once
//! wait for one answer; a question that failed is forgotten.

use muster_kind::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// How long kube-apiserver may take over an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks kube-apiserver something.
pub(super) async fn ask<T>(
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("kube-apiserver said nothing for {PATIENCE:?}")),
    }
}

/// At most so many answers are kept.
const ENTRIES: usize = 10_000;

/// Answers by the digest of their question.
pub(super) struct Cache<V> {
    entries: Mutex<HashMap<Digest, Arc<Entry<V>>>>,
    life: Duration,
}

struct Entry<V> {
    asked: Instant,
    answer: OnceCell<V>,
}

impl<V: Clone> Cache<V> {
    /// Answers are believed for so long.
    pub(super) fn new(life: Duration) -> Self {
        Cache {
            entries: Mutex::new(HashMap::new()),
            life,
        }
    }

    /// The answer that is known, or the one to be had now.
    pub(super) async fn get<E>(
        &self,
        question: Digest,
        ask: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let entry = self.entry(question);
        entry.answer.get_or_try_init(|| ask).await.cloned()
    }

    fn entry(&self, question: Digest) -> Arc<Entry<V>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |entry: &Entry<V>| entry.asked.elapsed() < self.life;
        if let Some(entry) = entries.get(&question).filter(|entry| fresh(entry)) {
            return entry.clone();
        }
        if entries.len() >= ENTRIES {
            entries.retain(|_, entry| fresh(entry));
        }
        if entries.len() >= ENTRIES {
            // Somebody asks thousands of different things: what is dropped is asked again.
            entries.clear();
        }
        let entry = Arc::new(Entry {
            asked: Instant::now(),
            answer: OnceCell::new(),
        });
        entries.insert(question, entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn the_same_question_is_asked_once_while_its_answer_is_fresh() {
        let asked = AtomicUsize::new(0);
        let cache = Cache::new(Duration::from_secs(3600));
        let ask = async || {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(7)
        };
        let (one, two) = tokio::join!(
            cache.get(Digest::of(b"a"), ask()),
            cache.get(Digest::of(b"a"), ask())
        );
        assert_eq!((one, two), (Ok(7), Ok(7)));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        cache.get(Digest::of(b"b"), ask()).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        let stale = Cache::new(Duration::ZERO);
        stale.get(Digest::of(b"a"), ask()).await.unwrap();
        stale.get(Digest::of(b"a"), ask()).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn a_question_that_failed_is_asked_again() {
        let cache = Cache::new(Duration::from_secs(3600));
        let failed = cache.get(Digest::of(b"a"), async { Err::<u8, _>("no") });
        assert_eq!(failed.await, Err("no"));
        let answered = cache.get(Digest::of(b"a"), async { Ok::<_, &str>(7) });
        assert_eq!(answered.await, Ok(7));
    }

    #[tokio::test]
    async fn thousands_of_questions_do_not_fill_the_memory() {
        let cache = Cache::new(Duration::from_secs(3600));
        for number in 0..ENTRIES * 2 + 1 {
            let question = Digest::of(&number.to_le_bytes());
            cache
                .get(question, async { Ok::<_, ()>(()) })
                .await
                .unwrap();
        }
        assert!(cache.entries.lock().unwrap().len() <= ENTRIES);
    }
}
