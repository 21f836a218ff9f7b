//! Versions: each ecosystem orders them in its own way, and a comparison that is nearly right is
//! wrong. Every order here is held against the tool that defines it.

pub mod dpkg;
