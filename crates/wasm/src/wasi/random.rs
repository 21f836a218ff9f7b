//! Randomness, as programs want it to seed their tables with. It comes from the seed that the standard
//! library gets from the system; that is no place to make keys, and nobody should in a policy.

use super::errno;
use crate::guest::{self, Caller};
use sha2::{Digest, Sha256};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use wasmtime::Result;

/// The most that is given at once, since it is not interrupted.
const MOST: u32 = 64 << 10;

pub(super) fn get(mut caller: Caller<'_>, pointer: u32, length: u32) -> Result<u32> {
    let (memory, state) = guest::split(&mut caller)?;
    let place = guest::place(memory, pointer, length)?;
    if length > MOST {
        return Ok(errno::INVAL);
    }
    let seed = RandomState::new();
    for chunk in place.chunks_mut(32) {
        state.drawn += 1;
        let mut block = Sha256::new();
        for part in 0..4u64 {
            block.update(seed.hash_one((state.drawn, part)).to_le_bytes());
        }
        for (byte, random) in chunk.iter_mut().zip(block.finalize()) {
            *byte = random;
        }
    }
    Ok(errno::SUCCESS)
}
