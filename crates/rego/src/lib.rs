//! Policies in Rego: one module with the libraries that it uses, read and asked within limits. The
//! interpreter, regorus, lives here and nowhere else. It differs from the Open Policy Agent where
//! policies notice, so modules are rewritten before it sees them, and functions replaced; what comes out
//! is what OPA says (`tests/it/conformance.yaml`). This crate does not know what a policy is about: which
//! rules are asked, and what their values mean, is for its callers. Modules and input are hostile.
//!
//! Start at [`Program`].

mod error;
mod functions;
mod head;
mod left;
mod library;
mod metadata;
mod negation;
mod nesting;
mod old;
mod program;
mod read;
mod rewrite;
mod show;
mod source;
mod text;
mod token;
mod walk;
mod watch;

pub use error::{AskError, LoadError, Place};
pub use left::Owner;
#[doc(hidden)]
pub use left::{Occupied, occupy};
pub use metadata::{Metadata, Selector, Subtype};
pub use program::Program;
pub use regorus::Value;
pub use show::show;

use serde::Deserialize;
use std::time::Duration;

/// Changes when what the engine answers may change: part of what answers are remembered by.
pub const VERSION: &str = "regorus-0.14.1+3";

/// The text of a module.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    /// What messages call it; with an empty name they leave it out.
    pub name: &'a str,
    /// Rego, v1 or v0.
    pub text: &'a str,
}

/// What a policy may take. What it may make is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long one asking may last, for all of its rules together.
    pub time: Duration,
    /// The owner of the policy, who has a limited number of evaluations that are left running.
    pub owner: Owner,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(2),
            owner: Owner::default(),
        }
    }
}

/// An object as the input of a policy.
pub fn input(object: &serde_json::Value) -> Value {
    Value::deserialize(object).unwrap_or(Value::Undefined)
}

/// What the comment before the package of a module says of it. Nothing else of the module is read.
pub fn said(module: &Module<'_>) -> Result<Option<Metadata>, LoadError> {
    read::apart(|| metadata::block(module))
}

/// Checks a library by itself: that it can be read, that it calls what there is, and that nothing in it
/// calls itself. What it takes from other libraries is only known where they are together.
pub fn check_library(library: &Module<'_>) -> Result<(), LoadError> {
    read::apart(|| {
        let prefix = text::fresh(&[library.text]);
        let read = read::parse(library)?;
        let mut engine = read::engine();
        let mut names = error::Names::default();
        rewrite::add(&mut engine, &mut names, &read, &read.globals(), &prefix)?;
        source::Source::check(&mut engine, &names, &prefix, source::Whole::No)?;
        Ok(())
    })
}
