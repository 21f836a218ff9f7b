//! The client against a real registry, with a network's faults between them where a test says so.

mod access;
mod content;
mod faults;
mod support;
