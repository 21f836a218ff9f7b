//! Registries: when they are looked through ([`plan`]), what is known of them ([`status`]), and
//! that none goes while a job works on it ([`bond`], [`hold`]).

pub(crate) mod bond;
mod growth;
mod hold;
mod plan;
pub(crate) mod reconcile;
mod retry;
mod run;
mod status;
pub(crate) mod targets;
