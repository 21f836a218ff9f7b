//! What a module may ask its host while it runs. Whether it gets an answer is decided elsewhere; here
//! it is made sure that asking has an end, and that no answer is larger than may be.

use crate::error::Stop;
use crate::guest::{self, Caller};
use crate::limits::size;

/// The most questions in one call.
const MOST_CALLS: usize = 4096;
/// The longest name of a binding, a namespace or an operation.
const LONGEST_NAME: u32 = 256;
/// The largest question.
const LARGEST_QUESTION: u32 = 1 << 20;
/// The largest answer; also the most of answers that may wait to be read.
pub(crate) const LARGEST_ANSWER: usize = 32 << 20;
/// The longest refusal, in characters.
const LONGEST_REFUSAL: usize = 2048;

/// Who answers a module's questions.
pub trait Host: Send + Sync {
    /// Answers, or refuses with a text that the module is given. It must come to an end by itself: a
    /// module that waits for it is only interrupted afterwards.
    fn call(
        &self,
        binding: &str,
        namespace: &str,
        operation: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, String>;
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
    let answer = if payload.len() > LARGEST_QUESTION as usize {
        Err(format!("{} is too large", called()))
    } else {
        state.host.call(binding, namespace, operation, payload)
    };
    let answer = match answer {
        Ok(answer) if answer.len() > LARGEST_ANSWER => {
            let most = size(LARGEST_ANSWER);
            Err(format!("{} is answered with more than {most}", called()))
        }
        Err(refusal) => Err(refusal.chars().take(LONGEST_REFUSAL).collect()),
        answer => answer,
    };
    state.left()?;
    Ok(answer)
}

fn name(memory: &[u8], (pointer, length): Piece) -> Result<&str, Stop> {
    if length > LONGEST_NAME {
        return Err(Stop::protocol("it made a host call with a name too long"));
    }
    std::str::from_utf8(guest::read(memory, pointer, length)?)
        .map_err(|_| Stop::protocol("it made a host call with a name that is no text"))
}
