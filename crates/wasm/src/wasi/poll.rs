//! Waiting. Streams are always ready, so a program only ever waits for a time; and never longer than
//! its call may take, as nothing interrupts one that sleeps.

use super::{errno, now, streams};
use crate::error::Stop;
use crate::guest::{self, Caller};
use crate::state::State;
use std::time::Duration;
use wasmtime::Result;

/// The most that is waited for at once.
const MOST: u32 = 256;
/// How long a subscription and an event are, in bytes.
const SUBSCRIPTION: u32 = 48;
const EVENT: u32 = 32;
const CLOCK: u8 = 0;
const WRITING: u8 = 2;

/// What a program waits for.
struct Subscription {
    tag: [u8; 8],
    kind: u8,
    /// When a time has come, from now on; nothing for streams.
    wait: Option<Duration>,
    error: u32,
}

pub(super) fn oneoff(
    mut caller: Caller<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    happened: u32,
) -> Result<u32> {
    if count == 0 || count > MOST {
        return Ok(errno::INVAL);
    }
    let (memory, state) = guest::split(&mut caller)?;
    let mut waiting = Vec::new();
    for at in 0..count {
        let pointer = guest::further(subscriptions, at * SUBSCRIPTION)?;
        waiting.push(subscription(memory, pointer, state)?);
    }
    let first = waiting.iter().map(|one| one.wait.unwrap_or_default()).min();
    let first = first.unwrap_or_default();
    if !first.is_zero() {
        let left = state.left()?;
        std::thread::sleep(first.min(left));
        state.left()?;
    }
    let mut number = 0u32;
    for one in waiting {
        if one.wait.is_some_and(|wait| wait > first) {
            continue;
        }
        let mut event = [0; EVENT as usize];
        event[..8].copy_from_slice(&one.tag);
        event[8..10].copy_from_slice(&one.error.to_le_bytes()[..2]);
        event[10] = one.kind;
        // One byte at least can be read or written.
        event[16] = u8::from(one.kind != CLOCK);
        guest::write(memory, guest::further(events, number * EVENT)?, &event)?;
        number += 1;
    }
    guest::write(memory, happened, &number.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

fn subscription(memory: &[u8], pointer: u32, state: &State) -> Result<Subscription, Stop> {
    let field = |offset: u32| guest::further(pointer, offset);
    let mut tag = [0; 8];
    tag.copy_from_slice(guest::read(memory, pointer, 8)?);
    let kind = guest::read(memory, field(8)?, 1)?[0];
    let about = guest::read_u32(memory, field(16)?)?;
    let mut read = Subscription {
        tag,
        kind,
        wait: None,
        error: errno::SUCCESS,
    };
    if kind == CLOCK {
        let timeout = guest::read_u64(memory, field(24)?)?;
        let absolute = guest::read(memory, field(40)?, 1)?[0] & 1 == 1;
        match now(state, about) {
            Some(now) if absolute => {
                read.wait = Some(Duration::from_nanos(timeout.saturating_sub(now)));
            }
            Some(_) => read.wait = Some(Duration::from_nanos(timeout)),
            None => read.error = errno::INVAL,
        }
    } else if !streams::is_ready(about, kind == WRITING) {
        read.error = errno::BADF;
    }
    Ok(read)
}
