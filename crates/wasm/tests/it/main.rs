//! Modules that behave and modules that do not, in the sandbox. Each harm is done in both ways that
//! modules are spoken to.

mod calls;
mod harm;
mod load;
mod program;
mod support;
