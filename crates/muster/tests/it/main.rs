//! Muster from the outside: the binary as a process, met by real clients and real servers.

mod clients;
mod differential;
mod kubectl;
