//! A policy in CEL: the validations of a ValidatingAdmissionPolicy, with its variables. An object keeps
//! the policy if every validation holds. If several do not, all their messages are told, in the order
//! in which they are written: an API server stops at the first, but whoever reads a report wants to
//! mend everything at once.

use super::compile::{Variable, compile};
use super::evaluate::Evaluation;
use super::meter::{Meter, Stop};
use super::node::Node;
use super::value::Value;
use crate::evaluate::Evaluator;
use crate::load::LoadError;
use crate::request::Request;
use crate::verdict::{LONGEST_MESSAGE, Verdict};
use serde::Deserialize;
use serde_json::Value as Json;
use std::time::Duration;

/// The most variables, and the most validations.
const MOST: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    variables: Vec<WrittenVariable>,
    validations: Vec<WrittenValidation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVariable {
    name: String,
    expression: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenValidation {
    expression: String,
    message: Option<String>,
    message_expression: Option<String>,
    // It is the code of an answer, and there is nobody to answer.
    #[serde(rename = "reason")]
    _reason: Option<String>,
}

#[derive(Debug)]
struct Validation {
    node: Node,
    message: String,
    computed: Option<Node>,
}

/// A policy in CEL, ready to judge.
#[derive(Debug)]
pub struct CelPolicy {
    variables: Vec<Variable>,
    validations: Vec<Validation>,
    time: Duration,
}

impl CelPolicy {
    /// Compiles the policy that `settings` hold: `{variables: [{name, expression}], validations:
    /// [{expression, message, messageExpression, reason}]}`. One evaluation of all of them may take
    /// `time`.
    pub fn load(settings: &Json, time: Duration) -> Result<CelPolicy, LoadError> {
        for field in ["paramKind", "paramRef"] {
            if settings.get(field).is_some() {
                let why = format!("{field} is not supported: write the parameters as variables");
                return Err(LoadError::Settings(why));
            }
        }
        let written = Settings::deserialize(settings)
            .map_err(|error| LoadError::Settings(error.to_string()))?;
        if written.validations.is_empty() {
            return Err(LoadError::Settings("there are no validations".into()));
        }
        if written.variables.len() > MOST || written.validations.len() > MOST {
            let why = format!("there are more than {MOST} variables or validations");
            return Err(LoadError::Settings(why));
        }
        let mut variables: Vec<Variable> = Vec::new();
        for (index, WrittenVariable { name, expression }) in written.variables.iter().enumerate() {
            let wrong = |why: String| LoadError::Source(format!("variables[{index}]: {why}"));
            if variables.iter().any(|known| known.name == *name) {
                return Err(wrong(format!("there are two variables {name:?}")));
            }
            if !is_name(name) {
                return Err(wrong(format!("{name:?} is no name")));
            }
            let variable = Variable::compile(name, expression, &variables);
            variables.push(variable.map_err(wrong)?);
        }
        let mut validations = Vec::new();
        for (index, written) in written.validations.iter().enumerate() {
            let wrong = |field: &str, why: String| {
                LoadError::Source(format!("validations[{index}].{field}: {why}"))
            };
            let node = compile(&written.expression, &variables);
            let computed = written.message_expression.as_deref();
            let computed = computed.map(|text| compile(text, &variables)).transpose();
            let message = written.message.as_deref().map(str::trim);
            let message = message.filter(|message| !message.is_empty());
            let shown = || format!("failed expression: {}", written.expression.trim());
            validations.push(Validation {
                node: node.map_err(|why| wrong("expression", why))?,
                computed: computed.map_err(|why| wrong("messageExpression", why))?,
                message: message.map_or_else(shown, str::to_owned),
            });
        }
        Ok(CelPolicy {
            variables,
            validations,
            time,
        })
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Evaluator for CelPolicy {
    fn judge(&self, request: &Request) -> Verdict {
        let mut evaluation = Evaluation::new(request, &self.variables, Meter::new(self.time));
        let mut messages = String::new();
        let mut failure = None;
        for (index, validation) in self.validations.iter().enumerate() {
            match evaluation.holds(&validation.node) {
                Ok(true) => {}
                Ok(false) => {
                    if messages.len() < LONGEST_MESSAGE {
                        let between = match messages.is_empty() {
                            true => "",
                            false => "; ",
                        };
                        messages.push_str(between);
                        messages.push_str(&validation.message(&mut evaluation));
                    }
                }
                Err(stop) => {
                    let told = format!("validations[{index}]: {}", stop.told());
                    let goes_on = matches!(stop, Stop::Failed(_));
                    failure = failure.or(Some(told));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        // What cannot be judged is told first: it hides what else might be wrong.
        match (failure, messages.is_empty()) {
            (Some(why), true) => Verdict::error(why),
            (Some(why), false) => Verdict::error(format!("{why}; {messages}")),
            (None, true) => Verdict::pass(),
            (None, false) => Verdict::fail(messages),
        }
    }
}

impl Validation {
    /// What is said. As on an API server, a message that cannot be computed is none.
    fn message<'a>(&'a self, evaluation: &mut Evaluation<'a>) -> String {
        let computed = self.computed.as_ref().map(|node| evaluation.value(node));
        match computed {
            Some(Ok(Value::Text(text))) if is_message(text.as_str()) => {
                let text = text.as_str().trim();
                text.chars().take(LONGEST_MESSAGE + 1).collect()
            }
            _ => self.message.clone(),
        }
    }
}

fn is_message(text: &str) -> bool {
    !text.trim().is_empty() && !text.trim().contains('\n')
}
