//! The crate from outside.

mod apart;
mod conformance;
mod hostile;
mod mixed;
mod program;
