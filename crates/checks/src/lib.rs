//! Configuration checks: policies in Rego, each bound to kinds, and what they say of an object. It
//! refuses to know where policies and objects come from and where reports go: texts go in
//! ([`written`]), what is in force comes out ([`Force`]), from it follows a [`Sheet`] for each kind, and
//! a sheet and an object give the [`Finding`]s of a [`report`]. Start reading at [`Force`].
//!
//! Whether an object is judged at all is decided by [`subject`]; whether its report is still right, by
//! the two hashes on it ([`report::Hashes`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod alone;
pub mod builtin;
pub mod check;
pub mod exception;
pub mod force;
pub mod hash;
pub mod judge;
pub mod kinds;
pub mod report;
pub mod sheet;
pub mod subject;
pub mod written;

pub use check::{Finding, Outcome, Place, Severity};
pub use force::{Force, PolicyId, Trouble};
pub use kinds::{Kind, Kinds};
pub use sheet::Sheet;
