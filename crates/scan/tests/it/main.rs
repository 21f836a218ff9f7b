//! The scan engine against real tools: layers made by tar, package sets as dpkg lists them,
//! versions as the native tools order them, databases as Go writes them.

#![allow(clippy::unwrap_used)]

mod debian;
mod documents;
mod hostile;
mod languages;
mod matching;
mod osv;
mod osv_index;
mod random;
mod rpm;
mod trivy;
mod versions;
