//! Muster from the outside: the binary as a process, met by real clients and real servers.

mod differential;
mod hostile;
mod start;
mod torture;
