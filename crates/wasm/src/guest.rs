//! A module's memory, as it asks us to read and write it. Every pointer and every length comes from the
//! module and is checked here, before anything is copied or allocated; one that leads out of the memory
//! ends the call.

use crate::error::Stop;
use crate::state::State;

/// A module that called us.
pub(crate) type Caller<'a> = wasmtime::Caller<'a, State>;

/// The memory of the module, and what we know of the call.
pub(crate) fn split<'a>(caller: &'a mut Caller<'_>) -> Result<(&'a mut [u8], &'a mut State), Stop> {
    let memory = caller
        .get_export("memory")
        .and_then(wasmtime::Extern::into_memory)
        .ok_or_else(|| Stop::protocol("it has no memory"))?;
    Ok(memory.data_and_store_mut(caller))
}

/// What is written at a place.
pub(crate) fn read(memory: &[u8], pointer: u32, length: u32) -> Result<&[u8], Stop> {
    let range = range(pointer, length)?;
    memory.get(range).ok_or_else(outside)
}

/// A place to write to.
pub(crate) fn place(memory: &mut [u8], pointer: u32, length: u32) -> Result<&mut [u8], Stop> {
    let range = range(pointer, length)?;
    memory.get_mut(range).ok_or_else(outside)
}

/// Writes to a place.
pub(crate) fn write(memory: &mut [u8], pointer: u32, bytes: &[u8]) -> Result<(), Stop> {
    let length = u32::try_from(bytes.len()).map_err(|_| outside())?;
    place(memory, pointer, length)?.copy_from_slice(bytes);
    Ok(())
}

/// A number of 32 bits.
pub(crate) fn read_u32(memory: &[u8], pointer: u32) -> Result<u32, Stop> {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(read(memory, pointer, 4)?);
    Ok(u32::from_le_bytes(bytes))
}

/// A number of 64 bits.
pub(crate) fn read_u64(memory: &[u8], pointer: u32) -> Result<u64, Stop> {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(read(memory, pointer, 8)?);
    Ok(u64::from_le_bytes(bytes))
}

/// A pointer and as many bytes further.
pub(crate) fn further(pointer: u32, bytes: u32) -> Result<u32, Stop> {
    pointer.checked_add(bytes).ok_or_else(outside)
}

/// A length as the module counts.
pub(crate) fn length(bytes: usize) -> Result<u32, Stop> {
    u32::try_from(bytes).map_err(|_| outside())
}

fn range(pointer: u32, length: u32) -> Result<std::ops::Range<usize>, Stop> {
    let start = usize::try_from(pointer).map_err(|_| outside())?;
    let length = usize::try_from(length).map_err(|_| outside())?;
    let end = start.checked_add(length).ok_or_else(outside)?;
    Ok(start..end)
}

fn outside() -> Stop {
    Stop::protocol("it passed a pointer that leads out of its memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_memory_is_read_or_written() {
        let mut memory = [0; 16];
        for (pointer, length, inside) in [
            (0, 16, true),
            (16, 0, true),
            (15, 1, true),
            (15, 2, false),
            (17, 0, false),
            (u32::MAX, u32::MAX, false),
            (0, u32::MAX, false),
            (8, u32::MAX - 4, false),
        ] {
            assert_eq!(read(&memory, pointer, length).is_ok(), inside);
            assert_eq!(place(&mut memory, pointer, length).is_ok(), inside);
        }
        assert!(read_u32(&memory, 13).is_err());
        assert!(read_u64(&memory, u32::MAX).is_err());
        assert!(further(u32::MAX, 1).is_err());
    }
}
