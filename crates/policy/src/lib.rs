//! Policies: which objects they judge ([`Policy`], [`rules`]), what they are asked ([`Request`]), who
//! answers ([`Evaluator`]) and what is said of it ([`Verdict`], [`report`]). It refuses to know where
//! objects come from and where reports go: an object and a policy go in, a verdict comes out, and the
//! same ones always give the same. Start reading at [`Evaluator`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod assess;
pub mod cel;
pub mod code;
pub mod evaluate;
pub mod group;
pub mod load;
pub mod module;
pub mod policy;
pub mod rego;
pub mod remote;
pub mod report;
pub mod request;
pub mod rules;
pub mod verdict;

pub use assess::{Judge, Prepared, Standing};
pub use evaluate::{Evaluator, Lookup, LookupError};
pub use group::GroupPolicy;
pub use load::LoadError;
pub use policy::{Body, Member, Policy, Sort};
pub use request::{GroupVersionKind, Request};
pub use rules::{Served, Target};
pub use verdict::{Cause, Outcome, Verdict};
