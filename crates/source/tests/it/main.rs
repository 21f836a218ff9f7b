//! Sources of every sort, made by the tests and scanned: real registries, layouts, archives, trees
//! and sockets. The daemon alone is played by the test, over a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
mod daemon;
mod directory;
mod document;
mod files;
mod hostile;
mod registry;
mod root;
mod support;
