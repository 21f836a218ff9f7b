//! What a module may ask its host while it runs. A host call has three outcomes: an answer, a negative
//! answer and none. This file bounds how often a module asks and how large questions and answers are,
//! and remembers a call that had no answer, because the call of the module then has no result.

use crate::error::Stop;
use crate::guest::{self, Caller};
use crate::limits::{seconds, size};
use std::time::{Duration, Instant};

/// The most questions in one call.
const MOST_CALLS: usize = 4096;
/// The longest name of a binding, a namespace or an operation.
const LONGEST_NAME: u32 = 256;
/// The largest question.
const LARGEST_QUESTION: u32 = 1 << 20;
/// The largest answer; also the most of answers that may wait to be read.
pub(crate) const LARGEST_ANSWER: usize = 32 << 20;
/// The longest error of a host call, in characters.
const LONGEST_REFUSAL: usize = 2048;

/// Answers the questions of a module.
pub trait Host: Send + Sync {
    /// Answers a question. It must come to an end by itself: a module that waits for it is only
    /// interrupted afterwards.
    fn call(
        &self,
        binding: &str,
        namespace: &str,
        operation: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, HostError>;
}

/// Why a host call gives no answer. The module gets an error in both cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// The answer is a definite no: an object does not exist. The module gets this text, and its own
    /// answer counts.
    Negative(String),
    /// The host could not look. Whatever the module answers then, its call has no result.
    Unavailable(Unavailable),
}

/// A host call without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// The error that the module gets.
    pub text: String,
    /// Which call, why it has no answer and what allows it, for the user.
    pub reason: String,
    /// Whether the same call of the same module may have an answer later.
    pub is_transient: bool,
}

impl HostError {
    /// A call without an answer, whose error says the same to the module and to the user.
    fn unavailable(reason: String, is_transient: bool) -> HostError {
        HostError::Unavailable(Unavailable {
            text: reason.clone(),
            reason,
            is_transient,
        })
    }
}

/// A piece of a module's memory: where it begins and how long it is.
pub(crate) type Piece = (u32, u32);

/// Asks the host in the name of a module. The outer error ends the call, the inner one is for the
/// module.
pub(crate) fn ask(
    caller: &mut Caller<'_>,
    [binding, namespace, operation]: [Piece; 3],
    payload: Piece,
) -> Result<Result<Vec<u8>, String>, Stop> {
    let (memory, state) = guest::split(caller)?;
    state.calls += 1;
    if state.calls > MOST_CALLS {
        let what = format!("it made more than {MOST_CALLS} host calls");
        return Err(Stop::Protocol(what));
    }
    let binding = name(memory, binding)?;
    let namespace = name(memory, namespace)?;
    let operation = name(memory, operation)?;
    let payload = guest::read(memory, payload.0, payload.1)?;
    let called = || format!("the host call {binding}/{namespace}/{operation}");
    let begun = Instant::now();
    let answer = if payload.len() > LARGEST_QUESTION as usize {
        let reason = format!("{} is too large", called());
        Err(HostError::unavailable(reason, false))
    } else {
        state.host.call(binding, namespace, operation, payload)
    };
    // The host, and not the module, used up the time.
    let time = state.limits.time;
    let is_late = state.left().is_err() && begun.elapsed() >= time / 2;
    let answer = check(answer, is_late.then_some(time), called);
    let answer = answer.map_err(|error| note(&mut state.unavailable, error));
    state.left()?;
    Ok(answer)
}

/// The answer, unless it is too large, or came after the time of the module.
fn check(
    answer: Result<Vec<u8>, HostError>,
    late: Option<Duration>,
    called: impl Fn() -> String,
) -> Result<Vec<u8>, HostError> {
    match (answer, late) {
        (Err(HostError::Unavailable(error)), _) => Err(HostError::Unavailable(error)),
        (_, Some(time)) => {
            let reason = format!("{} had no answer within {}", called(), seconds(&time));
            Err(HostError::unavailable(reason, true))
        }
        (Ok(answer), None) if answer.len() > LARGEST_ANSWER => {
            let most = size(LARGEST_ANSWER);
            let reason = format!("{} is answered with more than {most}", called());
            Err(HostError::unavailable(reason, false))
        }
        (answer, None) => answer,
    }
}

/// Keeps the first host call that had no answer, and gives the text for the module.
fn note(unavailable: &mut Option<Unavailable>, error: HostError) -> String {
    let text = match error {
        HostError::Negative(text) => text,
        HostError::Unavailable(error) => {
            let text = error.text.clone();
            unavailable.get_or_insert(error);
            text
        }
    };
    text.chars().take(LONGEST_REFUSAL).collect()
}

fn name(memory: &[u8], (pointer, length): Piece) -> Result<&str, Stop> {
    if length > LONGEST_NAME {
        return Err(Stop::protocol("it made a host call with a name too long"));
    }
    std::str::from_utf8(guest::read(memory, pointer, length)?)
        .map_err(|_| Stop::protocol("it made a host call with a name that is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_too_late_is_asked_for_again() {
        let called = || "the call".to_owned();
        let time = Duration::from_secs(2);
        let late = HostError::unavailable("the call had no answer within 2 s".into(), true);
        let negative = HostError::Negative("no".into());
        let refused = HostError::unavailable("not permitted".into(), false);
        for (answer, is_late, expected) in [
            (Ok(vec![1]), false, Ok(vec![1])),
            (Ok(vec![1]), true, Err(late.clone())),
            (Err(negative.clone()), false, Err(negative.clone())),
            (Err(negative), true, Err(late)),
            (Err(refused.clone()), true, Err(refused)),
        ] {
            assert_eq!(check(answer, is_late.then_some(time), called), expected);
        }
    }

    #[test]
    fn the_first_call_without_an_answer_is_kept() {
        let mut kept = None;
        for error in [
            HostError::Negative("absent".into()),
            HostError::unavailable("first".into(), true),
            HostError::unavailable("second".into(), false),
        ] {
            note(&mut kept, error);
        }
        assert_eq!(kept.map(|call| call.reason), Some("first".into()));
    }
}
