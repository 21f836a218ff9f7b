//! The kit against the servers it is made for.

mod browser;
mod kubernetes;
