//! What one call may use up. Memory and tables share one allowance, whatever the module's own limits
//! say: a growth past it ends the call, since a module that is only told «no» may ask forever.

use crate::error::Stop;
use std::time::Duration;

/// What an element of a table takes, about.
const ELEMENT: usize = 16;

/// What one call may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, from the making of the instance to the answer.
    pub time: Duration,
    /// How many bytes of memory it may have.
    pub memory: usize,
    /// How many bytes it may answer with.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(2),
            memory: 256 << 20,
            output: 4 << 20,
        }
    }
}

/// The allowance of memory of one call.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit: usize,
    used: usize,
    last: usize,
}

impl Allowance {
    pub(crate) fn new(limit: usize) -> Self {
        Allowance {
            limit,
            used: 0,
            last: 0,
        }
    }

    fn take(&mut self, bytes: usize) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(bytes);
        if used > self.limit {
            return Err(Stop::Memory.into());
        }
        self.used = used;
        self.last = bytes;
        Ok(true)
    }

    fn give_back(&mut self) {
        self.used = self.used.saturating_sub(std::mem::take(&mut self.last));
    }
}

impl wasmtime::ResourceLimiter for Allowance {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            self.last = 0;
            return Ok(false);
        }
        self.take(desired.saturating_sub(current))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            self.last = 0;
            return Ok(false);
        }
        self.take(desired.saturating_sub(current).saturating_mul(ELEMENT))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        1
    }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: usize) -> String {
    for (unit, name) in [(1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}

/// A time for people.
pub(crate) fn seconds(time: &Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::ResourceLimiter;

    #[test]
    fn memories_and_tables_share_one_allowance() {
        let mut allowance = Allowance::new(1000);
        assert!(allowance.memory_growing(0, 400, None).unwrap());
        assert!(allowance.memory_growing(0, 400, None).unwrap());
        assert!(allowance.table_growing(0, 10, None).unwrap());
        assert!(allowance.table_growing(10, 13, None).is_err());
        assert!(allowance.memory_growing(400, 500, None).is_err());
        assert!(!allowance.memory_growing(400, 500, Some(450)).unwrap());
    }

    #[test]
    fn what_could_not_be_had_is_not_counted() {
        let mut allowance = Allowance::new(1000);
        for _ in 0..3 {
            assert!(allowance.memory_growing(0, 600, None).unwrap());
            let error = wasmtime::Error::msg("no");
            allowance.memory_grow_failed(error).unwrap();
        }
        assert!(!allowance.memory_growing(0, 2, Some(1)).unwrap());
        assert!(allowance.memory_growing(0, 1000, None).unwrap());
    }
}
