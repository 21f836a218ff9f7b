//! Further conditions of a policy, as an API server judges them before it calls a webhook: one that
//! does not hold is enough, even if another cannot be judged; if one cannot be judged and none fails,
//! nobody knows.

use super::compile::compile;
use super::evaluate::Evaluation;
use super::meter::{Meter, Stop};
use super::node::Node;
use crate::load::LoadError;
use crate::policy::TIME;
use crate::request::Request;
use std::sync::Arc;

/// The most conditions: what an API server admits.
const MOST: usize = 64;

/// The conditions of a policy; none by default.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Arc<[(String, Node)]>);

impl Conditions {
    /// Compiles conditions, each a name and an expression.
    pub fn compile(written: &[(String, String)]) -> Result<Conditions, LoadError> {
        if written.len() > MOST {
            let why = format!("there are more than {MOST} match conditions");
            return Err(LoadError::Source(why));
        }
        let compiled = written.iter().map(|(name, text)| {
            let node = compile(text, &[]).map_err(|why| {
                LoadError::Source(format!(
                    "the match condition {name:?} cannot be used: {why}"
                ))
            })?;
            Ok((name.clone(), node))
        });
        compiled.collect::<Result<_, _>>().map(Conditions)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all conditions hold. The error names the condition that nobody can judge.
    pub fn hold(&self, request: &Request) -> Result<bool, String> {
        if self.is_empty() {
            return Ok(true);
        }
        let mut evaluation = Evaluation::new(request, &[], Meter::new(TIME));
        let mut failure = None;
        for (name, node) in self.0.iter() {
            let stop = match evaluation.holds(node) {
                Ok(true) => continue,
                Ok(false) => return Ok(false),
                Err(stop) => stop,
            };
            let told = format!("the match condition {name:?}: {}", stop.told());
            match stop {
                Stop::Failed(_) => failure = failure.or(Some(told)),
                // There is nothing left for the others.
                _ => return Err(told),
            }
        }
        failure.map_or(Ok(true), Err)
    }
}
