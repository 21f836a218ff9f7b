//! The kit against the servers it is made for.

mod kubernetes;
