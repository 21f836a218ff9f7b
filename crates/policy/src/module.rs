//! Policies that are WebAssembly modules, as Kubewarden has them. A module is asked once whether it
//! speaks our protocol and takes its settings, and then it judges; each time a new instance is asked, so
//! a verdict depends on nothing but the request, the settings and what the policy may read of the
//! cluster. Whatever a module does, it gives a verdict.

mod capabilities;
mod mask;

use crate::evaluate::{Evaluator, Lookup};
use crate::load::LoadError;
use crate::policy::Member;
use crate::request::Request;
use crate::verdict::Verdict;
use capabilities::{Capabilities, Session};
use muster_wasm::{Failure, Limits, Mode, Module, Operation};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The largest patch that is told, in bytes.
pub const LARGEST_PATCH: usize = 256 << 10;
/// The version of the protocol that is spoken here.
const PROTOCOL: &str = "v1";

/// A policy that is a WebAssembly module.
#[derive(Debug)]
pub struct ModulePolicy {
    module: Arc<Module>,
    settings: Vec<u8>,
    limits: Limits,
    capabilities: Arc<Capabilities>,
}

#[derive(Deserialize)]
struct SettingsAnswer {
    valid: bool,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    accepted: bool,
    message: Option<String>,
    mutated_object: Option<Value>,
    warnings: Option<Vec<String>>,
}

impl ModulePolicy {
    /// A policy of `module` with the settings of `member`, which reads of the cluster what `member`
    /// allows, through `lookup`. It asks the module about its settings, so it takes as long as an
    /// evaluation does.
    pub fn load(
        module: Arc<Module>,
        member: &Member,
        lookup: Arc<dyn Lookup>,
    ) -> Result<ModulePolicy, LoadError> {
        let kind = module
            .metadata()
            .and_then(|said| said.policy_type.as_deref());
        if kind == Some("raw") {
            let what = "it is a raw policy, which judges no Kubernetes objects";
            return Err(LoadError::Module(what.into()));
        }
        let settings = match &member.settings {
            Value::Null => json!({}).to_string(),
            settings => settings.to_string(),
        };
        let policy = ModulePolicy {
            module,
            settings: settings.into_bytes(),
            limits: Limits {
                time: member.time,
                ..Limits::default()
            },
            capabilities: Arc::new(Capabilities::new(member.context_aware.clone(), lookup)),
        };
        policy.check_protocol()?;
        policy.check_settings()?;
        Ok(policy)
    }

    fn check_protocol(&self) -> Result<(), LoadError> {
        if self.module.mode() != Mode::Wapc {
            return Ok(());
        }
        let answer = self
            .ask(Operation::ProtocolVersion, &[])
            .map_err(|trouble| LoadError::Module(trouble.message()))?
            .bytes;
        match serde_json::from_slice::<String>(&answer) {
            Ok(version) if version == PROTOCOL => Ok(()),
            Ok(version) => Err(LoadError::Module(format!(
                "it speaks version {version:?} of the protocol, and only {PROTOCOL:?} is known"
            ))),
            Err(_) => Err(LoadError::Module(
                "it does not say which version of the protocol it speaks".into(),
            )),
        }
    }

    fn check_settings(&self) -> Result<(), LoadError> {
        let answer = self
            .ask(Operation::ValidateSettings, &self.settings)
            .map_err(|trouble| match trouble.failure {
                // Settings that a policy cannot read at all are an error of its own.
                Failure::Guest(_) => LoadError::Settings(trouble.message()),
                _ => LoadError::Module(trouble.message()),
            })?;
        let answer: SettingsAnswer = serde_json::from_slice(&answer.bytes).map_err(|error| {
            LoadError::Module(format!(
                "its answer about the settings does not make sense: {error}"
            ))
        })?;
        match answer.valid {
            true => Ok(()),
            false => Err(LoadError::Settings(
                answer
                    .message
                    .unwrap_or_else(|| "no reason is given".into()),
            )),
        }
    }

    fn ask(&self, operation: Operation, payload: &[u8]) -> Result<Answered, Trouble> {
        let session = Arc::new(Session::new(self.capabilities.clone()));
        let answer = self
            .module
            .call(operation, payload, &self.limits, session.clone());
        let refused = session.last_refusal();
        match answer {
            Ok(bytes) => Ok(Answered { bytes, refused }),
            Err(failure) => Err(Trouble { failure, refused }),
        }
    }
}

impl Evaluator for ModulePolicy {
    fn judge(&self, request: &Request) -> Verdict {
        // The request is JSON as it is; parsing it would only cost.
        let payload = [
            b"{\"request\":",
            request.json(),
            b",\"settings\":",
            &self.settings,
            b"}",
        ]
        .concat();
        let answered = match self.ask(Operation::Validate, &payload) {
            Ok(answered) => answered,
            Err(trouble) => return Verdict::error(trouble.message()),
        };
        let answer: Answer = match serde_json::from_slice(&answered.bytes) {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("the answer of the policy does not make sense: {error}");
                return Verdict::error(what);
            }
        };
        let mut warnings = answer.warnings.unwrap_or_default();
        // A policy that judged without knowing all it wanted to know may be wrong.
        if let Some(refused) = answered.refused {
            warnings.insert(0, refused);
        }
        let verdict = match answer.accepted {
            false => Verdict::fail(answer.message.unwrap_or_default()),
            true => {
                let changed = answer.mutated_object;
                let patch = changed.and_then(|changed| patch(&request.object, &changed));
                Verdict::pass().with_patch(patch.unwrap_or_default())
            }
        };
        verdict.with_warnings(warnings)
    }
}

/// What a module answered, and the last host call that it got no answer to.
struct Answered {
    bytes: Vec<u8>,
    refused: Option<String>,
}

/// A module that failed, and the last host call that it got no answer to: that may be why.
struct Trouble {
    failure: Failure,
    refused: Option<String>,
}

impl Trouble {
    fn message(&self) -> String {
        let failure = self.failure.to_string();
        match &self.refused {
            Some(refused) if !failure.contains(refused.as_str()) => {
                format!("{failure}; before that, {refused}")
            }
            _ => failure,
        }
    }
}

/// What changes an object into another (RFC 6902); none if they are the same. In the place of a patch
/// that is too large to be told stands one that no object takes ([`left_out`]).
fn patch(object: &Value, changed: &Value) -> Option<Vec<Value>> {
    let patch = json_patch::diff(object, changed);
    if patch.0.is_empty() {
        return None;
    }
    match serde_json::to_value(&patch) {
        Ok(Value::Array(patch)) if is_told(&patch) => Some(patch),
        _ => Some(left_out()),
    }
}

fn is_told(patch: &[Value]) -> bool {
    let mut size = 0;
    patch.iter().all(|operation| {
        size += operation.to_string().len();
        size <= LARGEST_PATCH
    })
}

/// What stands in the place of a patch that is too large: that something would be changed stays
/// visible, and whoever applies it is refused instead of getting an object that was not changed.
pub fn left_out() -> Vec<Value> {
    vec![json!({"op": "test", "path": "", "value": "the patch is too large to be told"})]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_changes_unless_it_is_too_large() {
        let object = json!({"a": 1, "b": [1, 2]});
        let large = "x".repeat(LARGEST_PATCH);
        for (changed, expected) in [
            (json!({"a": 1, "b": [1, 2]}), None),
            (
                json!({"a": 2, "b": [1, 2]}),
                Some(vec![json!({"op": "replace", "path": "/a", "value": 2})]),
            ),
            (
                json!({"b": [1, 2]}),
                Some(vec![json!({"op": "remove", "path": "/a"})]),
            ),
            (json!({"a": large, "b": [1, 2]}), Some(left_out())),
        ] {
            assert_eq!(patch(&object, &changed), expected);
        }
    }
}
