//! The crate from outside.

mod conformance;
mod hostile;
mod program;
