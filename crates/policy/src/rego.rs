//! Policies in Rego. A policy is one module. It is asked with
//!
//! - `input.request`: the AdmissionRequest,
//! - `input.review`: the same, by the name that Gatekeeper has for it,
//! - `input.parameters`: the settings,
//!
//! and answers by the rules `deny` and `violation` of its package, whose messages refuse the object,
//! and `warn`, whose messages are warnings. A message is a text, or an object with `msg` or `message`;
//! a rule that is only true refuses without one. There is no `data` but the package itself.
//!
//! What a module may do, and that it ends, is for `muster-rego` to see to.

use crate::evaluate::Evaluator;
use crate::load::LoadError;
use crate::request::Request;
use crate::verdict::{LONGEST_MESSAGE, Verdict};
use muster_rego::{AskError, Limits, Module, Program, Value, input, show};
use std::collections::BTreeSet;
use std::time::Duration;

pub use muster_rego::Owner;

/// The rules whose messages refuse, and those whose messages warn.
const REFUSING: [&str; 2] = ["deny", "violation"];
const WARNING: [&str; 1] = ["warn"];

/// A policy in Rego, ready to judge.
#[derive(Debug)]
pub struct RegoPolicy {
    program: Program,
    parameters: Value,
}

/// What the rules said.
#[derive(Debug, Default)]
struct Said {
    refusals: BTreeSet<String>,
    warnings: BTreeSet<String>,
}

impl RegoPolicy {
    /// Compiles a module. It is read as Rego v1, and as v0 if it is none; one that imports `rego.v1` is
    /// never v0. Evaluations that are left running count for `owner`.
    pub fn load(
        source: &str,
        settings: &serde_json::Value,
        time: Duration,
        owner: Owner,
    ) -> Result<RegoPolicy, LoadError> {
        let wrong = |why: String| LoadError::Source(why);
        // There is one module, so messages need no name for it.
        let module = Module {
            name: "",
            text: source,
        };
        let program = Program::load(module, &[], &[], Limits { time, owner });
        let program = program.map_err(|error| match error {
            muster_rego::LoadError::Unavailable(_) => LoadError::Unreachable(error.to_string()),
            error => wrong(error.to_string()),
        })?;
        if let Some(path) = program.missing().next() {
            let why = format!("`{path}` cannot be imported: a policy is one module");
            return Err(wrong(why));
        }
        let judges = |name: &str| REFUSING.contains(&name) || WARNING.contains(&name);
        if !program.rules().any(judges) {
            let why = "the module has none of the rules `deny`, `violation` and `warn`";
            return Err(wrong(why.into()));
        }
        Ok(RegoPolicy {
            program,
            parameters: input(settings),
        })
    }

    fn ask(&self, request: &Request) -> Result<Said, Verdict> {
        let rules = [REFUSING.as_slice(), WARNING.as_slice()].concat();
        let input = self.input(request).map_err(Verdict::error)?;
        let values = self.program.ask(input, &rules).map_err(|error| {
            let why = format!("the policy {error}");
            match error {
                AskError::Unavailable(_) => Verdict::transient_error(why),
                _ => Verdict::error(why),
            }
        })?;
        let mut said = Said::default();
        for (index, value) in values.iter().enumerate() {
            match index < REFUSING.len() {
                true => collect(value, &mut said.refusals),
                false => collect(value, &mut said.warnings),
            }
        }
        Ok(said)
    }

    fn input(&self, request: &Request) -> Result<Value, String> {
        let json = std::str::from_utf8(request.json()).unwrap_or_default();
        let read = Value::from_json_str(json);
        let asked = read.map_err(|error| format!("the request cannot be read: {error}"))?;
        let mut input = Value::new_object();
        if let Ok(fields) = input.as_object_mut() {
            fields.insert("request".into(), asked.clone());
            fields.insert("review".into(), asked);
            fields.insert("parameters".into(), self.parameters.clone());
        }
        Ok(input)
    }
}

impl Evaluator for RegoPolicy {
    fn judge(&self, request: &Request) -> Verdict {
        match self.ask(request) {
            Err(failure) => failure,
            Ok(said) => {
                let verdict = match said.refusals.is_empty() {
                    true => Verdict::pass(),
                    false => Verdict::fail(join(&said.refusals)),
                };
                verdict.with_warnings(said.warnings)
            }
        }
    }
}

/// The messages that the value of a rule is.
fn collect(value: &Value, messages: &mut BTreeSet<String>) {
    match value {
        Value::Undefined | Value::Null | Value::Bool(false) => {}
        Value::Bool(true) => {
            messages.insert(String::from("the object is refused"));
        }
        Value::Set(items) => messages.extend(items.iter().map(message)),
        Value::Array(items) => messages.extend(items.iter().map(message)),
        // `deny[message] if …` in v1: the keys are the messages.
        Value::Object(fields) => {
            let said = fields
                .iter()
                .filter(|(_, value)| **value != Value::Bool(false));
            messages.extend(said.map(|(key, _)| message(key)));
        }
        other => {
            messages.insert(message(other));
        }
    }
}

fn message(value: &Value) -> String {
    let told = match value {
        Value::Object(fields) => ["msg", "message"]
            .into_iter()
            .find_map(|name| fields.get(&Value::from(name))),
        _ => None,
    };
    show(told.unwrap_or(value), LONGEST_MESSAGE)
}

/// All messages, as far as they fit.
fn join(messages: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for message in messages {
        if text.len() > LONGEST_MESSAGE {
            break;
        }
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(message);
    }
    text
}
