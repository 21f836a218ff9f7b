//! Telling somebody how far it is.

/// Hears how far something is. It may be asked from several threads.
pub trait Progress: Sync {
    /// Something begins, of so many bytes or records if that is known.
    fn begins(&self, what: &str, total: Option<u64>);
    /// So much more of it is done.
    fn advances(&self, amount: u64);
    /// It is over.
    fn ends(&self);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begins(&self, _: &str, _: Option<u64>) {}
    fn advances(&self, _: u64) {}
    fn ends(&self) {}
}
