//! Policies of every sort, asked as an audit asks them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod property;
mod source;
mod suite;
mod wasm;
