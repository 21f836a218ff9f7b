//! What can go wrong: a module that is none, and a call that fails. The texts end up in reports, where
//! a result that reads differently is a new one; so they hold nothing that changes from one run to the
//! next, neither addresses nor backtraces.

use crate::host::Unavailable;
use crate::journal::Journal;
use crate::limits::{seconds, size};
use std::time::Duration;

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine does not allow for a sandbox.
    #[error("a sandbox cannot be made: {0}")]
    Sandbox(String),
    /// The cache of compiled modules cannot be used.
    #[error("the cache of compiled modules cannot be used: {0}")]
    Cache(String),
    /// It is larger than modules may be.
    #[error("it has {0}, and a module may have {max}", max = size(crate::LARGEST_MODULE))]
    Large(String),
    /// It is no WebAssembly.
    #[error("it is not a WebAssembly module")]
    NotWasm,
    /// It is WebAssembly, but of a sort that is not run here.
    #[error("{0}")]
    Unsupported(String),
    /// It is WebAssembly that has mistakes, or uses what is not allowed here.
    #[error("it does not compile: {0}")]
    Invalid(String),
    /// What it says of itself cannot be read.
    #[error("its metadata cannot be read: {0}")]
    Metadata(String),
    /// It lacks what policies have.
    #[error("it exports no {0}")]
    Export(&'static str),
    /// It wants what is not there.
    #[error("it imports {0}, which is not there")]
    Import(String),
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It took longer than it may.
    #[error("the policy did not finish within {}", seconds(.0))]
    Time(Duration),
    /// It wanted more memory than it may have.
    #[error("the policy needs more than {} of memory", size(*.0))]
    Memory(usize),
    /// It answered with more than it may.
    #[error("the policy answers with more than {}", size(*.0))]
    Output(usize),
    /// It crashed.
    #[error("the policy crashed: {0}")]
    Trap(String),
    /// It says itself that it failed.
    #[error("the policy failed: {0}")]
    Guest(String),
    /// It does not do as its protocol says.
    #[error("the policy does not keep to its protocol: {0}")]
    Protocol(String),
    /// It made a host call that could not be answered, so that its own answer does not count.
    #[error(transparent)]
    HostCall(Unavailable),
}

/// Why our side ends a call while the module is running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("it exited with code {0}")]
    Exit(i32),
    #[error("out of time")]
    Time,
    #[error("out of memory")]
    Memory,
    #[error("too much output")]
    Output,
    #[error("{0}")]
    Guest(String),
    #[error("{0}")]
    Protocol(String),
}

impl Stop {
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Stop::Protocol(what.into())
    }
}

impl Failure {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Failure::HostCall(call) if call.is_transient)
    }

    /// What an error means that ended a call.
    pub(crate) fn of(error: &wasmtime::Error, limits: &crate::Limits, journal: &Journal) -> Self {
        let words = journal.last_words();
        let with_words = |what: String| match &words {
            Some(words) => format!("{what}; it wrote: {words}"),
            None => what,
        };
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return match stop {
                Stop::Exit(_) => Failure::Guest(with_words(stop.to_string())),
                Stop::Time => Failure::Time(limits.time),
                Stop::Memory => Failure::Memory(limits.memory),
                Stop::Output => Failure::Output(limits.output),
                Stop::Guest(what) => Failure::Guest(what.clone()),
                Stop::Protocol(what) => Failure::Protocol(what.clone()),
            };
        }
        let what = match error.downcast_ref::<wasmtime::Trap>() {
            Some(wasmtime::Trap::Interrupt) => return Failure::Time(limits.time),
            Some(wasmtime::Trap::UnreachableCodeReached) => {
                "it gave up (an unreachable instruction was executed)".to_owned()
            }
            Some(wasmtime::Trap::StackOverflow) => "its call stack is exhausted".to_owned(),
            Some(trap) => trap.to_string().replacen("wasm trap: ", "", 1),
            None => one_line(&error.to_string()),
        };
        Failure::Trap(with_words(what))
    }
}

/// An error of the engine with its causes, on one line.
pub(crate) fn causes(error: &wasmtime::Error) -> String {
    one_line(&format!("{error:#}"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_in_units_that_people_use() {
        for (failure, expected) in [
            (
                Failure::Time(Duration::from_secs(2)),
                "the policy did not finish within 2 s",
            ),
            (
                Failure::Time(Duration::from_millis(1500)),
                "the policy did not finish within 1500 ms",
            ),
            (
                Failure::Memory(256 << 20),
                "the policy needs more than 256 MiB of memory",
            ),
            (
                Failure::Output(100),
                "the policy answers with more than 100 bytes",
            ),
        ] {
            assert_eq!(failure.to_string(), expected);
        }
    }
}
