//! Muster from the outside: the binary as a process, met by real clients and real servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod clients;
mod compression;
mod differential;
mod hostile;
mod kubectl;
mod scan;
mod start;
mod swept;
mod torture;
