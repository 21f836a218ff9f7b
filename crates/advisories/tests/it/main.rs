//! The data directory against a real registry, real databases, and processes that are killed.

#![allow(clippy::unwrap_used)]

mod hostile;
mod hub;
mod import;
mod killed;
mod origins;
mod support;
mod update;
