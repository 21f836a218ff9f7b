//! What is known of one call while it runs. It is made with the instance and thrown away with it.

use crate::error::Stop;
use crate::host::{Host, Unavailable};
use crate::journal::Journal;
use crate::limits::{Allowance, Limits};
use crate::module::Mode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One call.
pub(crate) struct State {
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) allowance: Allowance,
    pub(crate) host: Arc<dyn Host>,
    /// How many host calls were made.
    pub(crate) calls: usize,
    /// The first host call that had no answer.
    pub(crate) unavailable: Option<Unavailable>,
    pub(crate) journal: Journal,
    pub(crate) started: Instant,
    /// How much randomness was given out, in blocks.
    pub(crate) drawn: u64,
    /// The operation by its name in the module's protocol.
    pub(crate) operation: &'static str,
    /// What is asked: waPC.
    pub(crate) request: Vec<u8>,
    /// What was answered: waPC.
    pub(crate) response: Option<Vec<u8>>,
    /// How the module says that it failed: waPC.
    pub(crate) complaint: Option<String>,
    /// What the last host call gave: waPC.
    pub(crate) answer: Option<Result<Vec<u8>, String>>,
    /// What is asked, and the answers of host calls: WASI.
    pub(crate) input: Input,
    /// What was answered: WASI.
    pub(crate) output: Vec<u8>,
}

impl State {
    pub(crate) fn new(
        mode: Mode,
        operation: &'static str,
        payload: &[u8],
        limits: &Limits,
        host: Arc<dyn Host>,
    ) -> Self {
        let (request, input) = match mode {
            Mode::Wapc => (payload.to_vec(), Vec::new()),
            Mode::Wasi => (Vec::new(), payload.to_vec()),
        };
        State {
            mode,
            limits: *limits,
            allowance: Allowance::new(limits.memory),
            host,
            calls: 0,
            unavailable: None,
            journal: Journal::default(),
            started: Instant::now(),
            drawn: 0,
            operation,
            request,
            response: None,
            complaint: None,
            answer: None,
            input: Input {
                bytes: input,
                at: 0,
            },
            output: Vec::new(),
        }
    }

    /// How much time is left; an end if there is none.
    pub(crate) fn left(&self) -> Result<Duration, Stop> {
        let left = self.limits.time.checked_sub(self.started.elapsed());
        left.filter(|left| !left.is_zero()).ok_or(Stop::Time)
    }
}

/// The standard input of a module: it may be written to while it is read.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    at: usize,
}

impl Input {
    /// Takes up to `most` bytes.
    pub(crate) fn take(&mut self, most: usize) -> &[u8] {
        let start = self.at;
        self.at = start.saturating_add(most).min(self.bytes.len());
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// How much has not been taken yet.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.left() == 0 {
            self.bytes.clear();
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }
}
