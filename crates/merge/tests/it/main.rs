//! The crate's tests by their subject.
#![allow(clippy::unwrap_used, missing_docs)]

mod apply;
mod json_patch;
mod properties;
mod strategic;
mod typed;
mod update;
