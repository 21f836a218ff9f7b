//! What is asked of registries, counted: for whoever watches a process, not for deciding anything.
//! Counting is adding to a number; hosts and repositories are not told apart, so that there are as
//! many numbers on the last day as on the first.

use http::{Method, StatusCode};
use std::sync::atomic::{AtomicU64, Ordering};

/// The methods that are told apart; all others are one.
const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "other"];
/// What comes of a request: a class of status, or no answer at all.
const OUTCOMES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The numbers, counted up by every client of a process.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: [[AtomicU64; OUTCOMES.len()]; METHODS.len()],
    bytes: AtomicU64,
    retries: AtomicU64,
    waits: AtomicU64,
}

/// How much was asked of registries since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests by method and by what came of them: `2xx` to `5xx`, or `none` without an answer.
    pub requests: Vec<(&'static str, &'static str, u64)>,
    /// Bytes of answers that were read, compressed as they came.
    pub bytes: u64,
    /// Tries after a failure, of requests and of layers.
    pub retries: u64,
    /// Times that somebody waited because a host wanted to be left alone.
    pub waits: u64,
}

impl Tally {
    pub(crate) fn request(&self, method: &Method, status: Option<StatusCode>) {
        let method = METHODS.iter().position(|known| *known == method.as_str());
        let method = method.unwrap_or(METHODS.len() - 1);
        let outcome = status.map_or(0, |status| usize::from(status.as_u16() / 100));
        if let Some(count) = self.requests[method].get(outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers of this moment; requests that never happened are left out.
    pub(crate) fn counts(&self) -> Counts {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut requests = Vec::new();
        for (method, outcomes) in METHODS.into_iter().zip(&self.requests) {
            let outcomes = OUTCOMES.into_iter().zip(outcomes);
            let counted = outcomes.map(|(outcome, count)| (method, outcome, value(count)));
            requests.extend(counted.filter(|(_, _, count)| *count > 0));
        }
        Counts {
            requests,
            bytes: value(&self.bytes),
            retries: value(&self.retries),
            waits: value(&self.waits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_by_what_came_of_them() {
        let tally = Tally::default();
        assert_eq!(tally.counts(), Counts::default());
        for (method, status) in [
            (Method::GET, Some(StatusCode::OK)),
            (Method::GET, Some(StatusCode::PARTIAL_CONTENT)),
            (Method::HEAD, Some(StatusCode::NOT_FOUND)),
            (Method::POST, None),
            (Method::TRACE, Some(StatusCode::BAD_GATEWAY)),
        ] {
            tally.request(&method, status);
        }
        // A status that no server should send is nobody's class.
        tally.request(&Method::GET, StatusCode::from_u16(999).ok());
        tally.read(5);
        tally.read(7);
        tally.retry();
        tally.wait();
        let expected = Counts {
            requests: vec![
                ("GET", "2xx", 2),
                ("HEAD", "4xx", 1),
                ("POST", "none", 1),
                ("other", "5xx", 1),
            ],
            bytes: 12,
            retries: 1,
            waits: 1,
        };
        assert_eq!(tally.counts(), expected);
    }
}
