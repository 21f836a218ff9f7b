//! Versions: each ecosystem orders them in its own way, and a comparison that is nearly right is
//! wrong. Every order here is held against the tool that defines it, where there is one.

pub mod apk;
pub mod composer;
pub mod dpkg;
pub mod maven;
pub mod python;
pub mod range;
pub mod rpm;
pub mod ruby;
pub mod semantic;

/// Digits of any length, as numbers.
pub(crate) use dpkg::numbers;
