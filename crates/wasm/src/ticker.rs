//! The clock by which calls are interrupted. The engine only counts; this thread makes it count.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::Engine;

/// How often the engine counts on.
const TICK: Duration = Duration::from_millis(10);

/// The thread; it ends with this value.
#[derive(Debug)]
pub(crate) struct Ticker {
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let (alive, ended) = channel();
        let tick = move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                engine.increment_epoch();
            }
        };
        let thread = std::thread::Builder::new()
            .name("policy-clock".into())
            .spawn(tick)?;
        Ok(Ticker {
            alive: Some(alive),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // The thread waits for this end, so that it is gone at once.
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How many ticks pass at least in a time; the one that has begun does not count.
pub(crate) fn ticks(time: Duration) -> u64 {
    let whole = time.as_millis().div_ceil(TICK.as_millis());
    u64::try_from(whole)
        .unwrap_or(u64::MAX / 2)
        .min(u64::MAX / 2)
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_ends_with_the_ticker() {
        let engine = Engine::default();
        let weak = engine.weak();
        let ticker = Ticker::start(engine).unwrap();
        assert!(weak.upgrade().is_some());
        drop(ticker);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn a_time_is_never_shorter_than_it_is() {
        for (time, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_millis(1), 2),
            (Duration::from_millis(10), 2),
            (Duration::from_secs(2), 201),
            (Duration::MAX, u64::MAX / 2 + 1),
        ] {
            assert_eq!(ticks(time), expected, "{time:?}");
        }
    }
}
