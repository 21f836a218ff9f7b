//! The three streams that a program has from the beginning; no other is ever open.

use super::{IMPORTS, errno};
use crate::error::Stop;
use crate::guest::{self, Caller};
use crate::module::Mode;
use crate::state::State;
use wasmtime::{Linker, Result};

const STANDARD_INPUT: u32 = 0;
const STANDARD_OUTPUT: u32 = 1;
const STANDARD_ERROR: u32 = 2;
/// The most pieces that are read or written at once, as on other systems.
const MOST_PIECES: u32 = 1024;
/// What may be done with a stream: reading or writing, and asking whether it is ready.
const RIGHTS: u64 = 1 << 1 | 1 << 6 | 1 << 27;

pub(super) fn link(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap(IMPORTS, "fd_read", read)?;
    linker.func_wrap(IMPORTS, "fd_write", write)?;
    linker.func_wrap(IMPORTS, "fd_fdstat_get", describe)?;
    linker.func_wrap(IMPORTS, "fd_close", |stream: u32| open(stream))?;
    linker.func_wrap(
        IMPORTS,
        "fd_seek",
        |stream: u32, _: u64, _: u32, _: u32| match open(stream) {
            errno::SUCCESS => errno::SPIPE,
            error => error,
        },
    )?;
    // Programs look for open directories from the fourth number on until there is none.
    linker.func_wrap(IMPORTS, "fd_prestat_get", |_: u32, _: u32| errno::BADF)?;
    linker.func_wrap(IMPORTS, "fd_prestat_dir_name", |_: u32, _: u32, _: u32| {
        errno::BADF
    })?;
    Ok(())
}

/// Whether a stream can be read from, or written to, at once: all that are open can.
pub(super) fn is_ready(stream: u32, for_writing: bool) -> bool {
    match for_writing {
        false => stream == STANDARD_INPUT,
        true => matches!(stream, STANDARD_OUTPUT | STANDARD_ERROR),
    }
}

fn open(stream: u32) -> u32 {
    match stream {
        STANDARD_INPUT | STANDARD_OUTPUT | STANDARD_ERROR => errno::SUCCESS,
        _ => errno::BADF,
    }
}

fn read(mut caller: Caller<'_>, stream: u32, pieces: u32, count: u32, taken: u32) -> Result<u32> {
    if stream != STANDARD_INPUT {
        return Ok(errno::BADF);
    }
    if count > MOST_PIECES {
        return Ok(errno::INVAL);
    }
    let (memory, state) = guest::split(&mut caller)?;
    let mut total = 0u32;
    for at in 0..count {
        let (pointer, length) = piece(memory, pieces, at)?;
        let place = guest::place(memory, pointer, length)?;
        let bytes = state.input.take(place.len());
        let (filled, rest) = place.split_at_mut(bytes.len());
        filled.copy_from_slice(bytes);
        total = guest::further(total, guest::length(filled.len())?)?;
        if !rest.is_empty() {
            break;
        }
    }
    guest::write(memory, taken, &total.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

fn write(
    mut caller: Caller<'_>,
    stream: u32,
    pieces: u32,
    count: u32,
    written: u32,
) -> Result<u32> {
    if !is_ready(stream, true) {
        return Ok(errno::BADF);
    }
    if count > MOST_PIECES {
        return Ok(errno::INVAL);
    }
    let (memory, state) = guest::split(&mut caller)?;
    let mut total = 0u32;
    for at in 0..count {
        let (pointer, length) = piece(memory, pieces, at)?;
        let bytes = guest::read(memory, pointer, length)?;
        total = guest::further(total, length)?;
        // Only a program answers by what it writes.
        if stream == STANDARD_OUTPUT && state.mode == Mode::Wasi {
            if bytes.len() > state.limits.output.saturating_sub(state.output.len()) {
                return Err(Stop::Output.into());
            }
            state.output.extend_from_slice(bytes);
        } else {
            state.journal.write(bytes);
        }
    }
    guest::write(memory, written, &total.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

/// Where a piece of what is read or written begins, and how long it is.
fn piece(memory: &[u8], pieces: u32, at: u32) -> Result<(u32, u32), Stop> {
    let pointer = guest::further(pieces, at * 8)?;
    let length = guest::further(pointer, 4)?;
    Ok((
        guest::read_u32(memory, pointer)?,
        guest::read_u32(memory, length)?,
    ))
}

/// Kind (not known: it is no terminal), flags, and rights.
fn describe(mut caller: Caller<'_>, stream: u32, description: u32) -> Result<u32> {
    if open(stream) != errno::SUCCESS {
        return Ok(errno::BADF);
    }
    let (memory, _) = guest::split(&mut caller)?;
    let mut described = [0; 24];
    if let Some(rights) = described.get_mut(8..16) {
        rights.copy_from_slice(&RIGHTS.to_le_bytes());
    }
    guest::write(memory, description, &described)?;
    Ok(errno::SUCCESS)
}
