//! Policies that are WebAssembly modules, as Kubewarden has them. A module is asked once whether it
//! speaks our protocol and takes its settings, and then it judges; each time a new instance is asked, so
//! a verdict depends on nothing but the request, the settings and what the policy may read of the
//! cluster. Whatever a module does, it gives a verdict; after a host call that could not be answered,
//! the verdict is an error.

mod capabilities;
mod mask;

use crate::evaluate::{Evaluator, Lookup};
use crate::load::LoadError;
use crate::policy::Member;
use crate::request::Request;
use crate::verdict::{INTERNAL_ERROR, Verdict};
use capabilities::Capabilities;
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
    code: Option<Value>,
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
        let answer = self.ask(Operation::ProtocolVersion, &[]);
        let answer = answer.map_err(load_error)?;
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
        let answer = self.ask(Operation::ValidateSettings, &self.settings);
        let answer = answer.map_err(|failure| match failure {
            // Settings that a policy cannot read at all are an error of its own.
            Failure::Guest(_) => LoadError::Settings(failure.to_string()),
            failure => load_error(failure),
        })?;
        let answer: SettingsAnswer = serde_json::from_slice(&answer).map_err(|error| {
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

    fn ask(&self, operation: Operation, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        let host = self.capabilities.clone();
        self.module.call(operation, payload, &self.limits, host)
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
        let answer = match self.ask(Operation::Validate, &payload) {
            Ok(answer) => answer,
            Err(failure) if failure.is_transient() => {
                return Verdict::unavailable(failure.to_string());
            }
            Err(failure) => return Verdict::error(failure.to_string()),
        };
        let answer: Answer = match serde_json::from_slice(&answer) {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("the answer of the policy does not make sense: {error}");
                return Verdict::error(what);
            }
        };
        let verdict = if answer.is_internal_error() {
            Verdict::error(match answer.message.as_deref().map(str::trim) {
                None | Some("") => "the policy answers with code 500, without a message",
                Some(message) => message,
            })
        } else if answer.accepted {
            let changed = answer.mutated_object;
            let patch = changed.and_then(|changed| patch(&request.object, &changed));
            Verdict::pass().with_patch(patch.unwrap_or_default())
        } else {
            Verdict::fail(answer.message.unwrap_or_default())
        };
        verdict.with_warnings(answer.warnings.unwrap_or_default())
    }
}

impl Answer {
    /// Whether the policy says that it could not evaluate the object, whatever else it says.
    fn is_internal_error(&self) -> bool {
        let code = self.code.as_ref().and_then(Value::as_i64);
        code == Some(INTERNAL_ERROR)
    }
}

/// Why a module that could not be asked about its protocol or settings does not load.
fn load_error(failure: Failure) -> LoadError {
    let reason = failure.to_string();
    match failure {
        Failure::HostCall(call) => {
            let reason = format!("while its settings are validated, {reason}");
            match call.is_transient {
                true => LoadError::Unreachable(reason),
                false => LoadError::HostCall(reason),
            }
        }
        _ => LoadError::Module(reason),
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
