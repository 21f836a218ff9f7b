//! What controllers need and kube-runtime lacks. The crate knows no kind of ours.
//!
//! [`Panics`] keeps a panic within the object, or the loop, in which it happens. [`delay`] bounds the time
//! until something is due.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod delay;
mod panics;

pub use panics::{Panicked, Panics};
