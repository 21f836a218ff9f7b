//! What happens when one JSON document meets another: JSON patch, merge patch, strategic merge
//! patch and server-side apply, as Kubernetes does them, over [`serde_json::Value`] and
//! [`muster_kind::Schema`]. Pure: no input or output, no clock, no asynchrony; every function is
//! total on hostile input. Ownership of fields is a [`Set`] of [`Path`]s, written as `FieldsV1`
//! in `metadata.managedFields`. Start reading at [`apply()`] and [`update()`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apply;
mod compare;
mod conflict;
mod element;
mod last_applied;
mod printed;
mod prune;
mod remove;
mod typed;
mod update;
mod validate;

pub mod fields_v1;
pub mod json_patch;
pub mod managed;
pub mod merge_patch;
pub mod set;
pub mod strategic;

pub use apply::{Applied, ApplyError, ApplyRequest, apply};
pub use compare::{Comparison, compare};
pub use conflict::{Conflict, Conflicts};
pub use element::{Path, PathElement};
pub use managed::{Entry, Managed, Operation, TooManyEntries};
pub use remove::remove;
pub use set::Set;
pub use typed::{merge, to_set};
pub use update::{UpdateRequest, keep_times, update};
pub use validate::{Violation, Violations, validate};

/// The deepest nesting a document may have. Deeper patches and configurations are refused;
/// deeper parts of stored objects are treated as one value.
pub const MAX_DEPTH: usize = 100;
