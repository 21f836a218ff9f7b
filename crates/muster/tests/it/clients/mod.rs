//! Clients beside kubectl: each family of client libraries has its own idea of lists and watches.

mod python;
pub(crate) mod reflector;
