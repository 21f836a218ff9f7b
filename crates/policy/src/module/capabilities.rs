//! What a module may ask while it runs. It may log, and it may read the kinds that its policy names;
//! every other host call of Kubewarden is unavailable. The module gets the words that Kubewarden's hosts
//! have for an error, since policies read them; the user gets what to allow.

use super::mask;
use crate::evaluate::{Lookup, LookupError};
use crate::request::GroupVersionKind;
use muster_wasm::{Host, HostError, Unavailable};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The binding under which Kubewarden's hosts are called.
const BINDING: &str = "kubewarden";
/// The longest line that is logged, in bytes.
const LONGEST_LINE: usize = 4096;
/// An annotation that lists of Kubewarden's hosts leave out.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What else can evaluate a policy that makes calls which are not supported.
const ELSEWHERE: &str = "a PolicyServer with `spec.address` can evaluate this policy";
/// What allows a policy to read a kind.
const GRANT: &str =
    "name it in `contextAwareResources` of a ClusterAdmissionPolicy or ClusterAdmissionPolicyGroup";

/// What the modules of one policy may ask.
#[derive(Debug)]
pub(super) struct Capabilities {
    allowed: Vec<GroupVersionKind>,
    lookup: Arc<dyn Lookup>,
}

/// A host call, by name.
#[derive(Clone, Copy)]
struct Call<'a> {
    binding: &'a str,
    namespace: &'a str,
    operation: &'a str,
}

#[derive(Deserialize)]
struct Question {
    api_version: String,
    kind: String,
    name: Option<String>,
    namespace: Option<String>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    field_masks: Option<BTreeSet<String>>,
}

impl Capabilities {
    pub(super) fn new(allowed: Vec<GroupVersionKind>, lookup: Arc<dyn Lookup>) -> Self {
        Capabilities { allowed, lookup }
    }

    fn answer(&self, call: Call, payload: &[u8]) -> Result<Value, HostError> {
        if call.binding != BINDING {
            return Err(call.unknown("binding", call.binding));
        }
        match (call.namespace, call.operation) {
            ("kubernetes", "get_resource") => self.get(call, &call.read(payload)?),
            ("kubernetes", "list_resources_by_namespace") => {
                let question = call.read(payload)?;
                match text(question.namespace.as_ref()) {
                    Some(namespace) => self.list(call, &question, Some(namespace)),
                    None => Err(call.malformed("it names no namespace")),
                }
            }
            ("kubernetes", "list_resources_all") => self.list(call, &call.read(payload)?, None),
            ("kubernetes", "can_i") => Err(call.unsupported()),
            ("oci" | "net" | "crypto", _) => Err(call.unsupported()),
            ("kubernetes" | "tracing", operation) => Err(call.unknown("operation", operation)),
            (namespace, _) => Err(call.unknown("namespace", namespace)),
        }
    }

    fn get(&self, call: Call, question: &Question) -> Result<Value, HostError> {
        let kind = self.kind(call, question)?;
        let Some(name) = text(question.name.as_ref()) else {
            return Err(call.malformed("it names no object"));
        };
        let namespace = text(question.namespace.as_ref());
        let found = self.lookup.get(&kind, namespace, name);
        let mut object = found.map_err(|error| call.failed(question, error))?;
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        metadata.map(|metadata| metadata.remove("managedFields"));
        question.mask(&mut object);
        Ok(object)
    }

    fn list(
        &self,
        call: Call,
        question: &Question,
        namespace: Option<&str>,
    ) -> Result<Value, HostError> {
        let kind = self.kind(call, question)?;
        let labels = text(question.label_selector.as_ref());
        let fields = text(question.field_selector.as_ref());
        let found = self.lookup.list(&kind, namespace, labels, fields);
        let mut list = found.map_err(|error| call.failed(question, error))?;
        let items = list.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            if let Some(metadata) = item.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
                let annotations = metadata.get_mut("annotations");
                let annotations = annotations.and_then(Value::as_object_mut);
                annotations.map(|annotations| annotations.remove(LAST_APPLIED));
            }
            question.mask(item);
        }
        Ok(list)
    }

    /// The kind that is asked for, if the policy may read it.
    fn kind(&self, call: Call, question: &Question) -> Result<GroupVersionKind, HostError> {
        let kind = GroupVersionKind::parse(&question.api_version, &question.kind);
        // Whoever audits may read more than whoever reads reports, and a policy can say what it saw.
        if kind.is_secret() {
            let why = format!("policies may not read Secrets; {ELSEWHERE}");
            return Err(call.forbidden(question, &why));
        }
        match self.allowed.contains(&kind) {
            true => Ok(kind),
            false => {
                let named = question.named();
                let why = format!("the policy may not read {named}; {GRANT}");
                Err(call.forbidden(question, &why))
            }
        }
    }
}

/// The errors of a call: what the module gets, and what the user gets.
impl Call<'_> {
    fn read(self, payload: &[u8]) -> Result<Question, HostError> {
        serde_json::from_slice(payload).map_err(|error| self.malformed(&error.to_string()))
    }

    fn unavailable(self, text: String, what: &str, is_transient: bool) -> HostError {
        let path = match self.binding {
            BINDING => format!("{}/{}", self.namespace, self.operation),
            other => format!("{other}/{}/{}", self.namespace, self.operation),
        };
        HostError::Unavailable(Unavailable {
            text,
            reason: format!("the host call {path} {what}"),
            is_transient,
        })
    }

    fn unknown(self, what: &str, name: &str) -> HostError {
        let text = format!("unknown {what}: {name}");
        self.unavailable(text, &format!("is not known; {ELSEWHERE}"), false)
    }

    fn unsupported(self) -> HostError {
        let path = format!("{}/{}", self.namespace, self.operation);
        let text = format!(
            "Policy has not been granted access to the '{path}' host capability. \
             The violation has been reported."
        );
        self.unavailable(text, &format!("is not supported; {ELSEWHERE}"), false)
    }

    fn malformed(self, why: &str) -> HostError {
        self.unavailable(why.into(), &format!("is malformed: {why}"), false)
    }

    fn forbidden(self, question: &Question, why: &str) -> HostError {
        let text = format!(
            "Policy has not been granted access to Kubernetes {}/{} resources. \
             The violation has been reported.",
            question.api_version, question.kind
        );
        self.unavailable(text, &format!("is not permitted: {why}"), false)
    }

    /// What a lookup without a result means.
    fn failed(self, question: &Question, error: LookupError) -> HostError {
        let kind = format!("{}/{}", question.api_version, question.kind);
        let text = match &error {
            LookupError::NotFound => {
                let name = question.name.as_deref().unwrap_or_default();
                let namespace = question.namespace.as_deref();
                format!("Cannot find {kind} named '{name}' inside of namespace '{namespace:?}'")
            }
            LookupError::NoNamespace => {
                format!("Resource {kind} is namespaced, but no namespace was provided")
            }
            LookupError::ClusterWide => format!(
                "resource {kind} is cluster wide. Cannot search for it inside of a namespace"
            ),
            LookupError::Unavailable { reason, .. } => reason.clone(),
        };
        let text = format!("Callback evaluation failure: {text}");
        match error {
            LookupError::NotFound | LookupError::NoNamespace | LookupError::ClusterWide => {
                HostError::Negative(text)
            }
            LookupError::Unavailable {
                reason,
                is_transient,
            } => self.unavailable(text, &format!("failed: {reason}"), is_transient),
        }
    }
}

impl Question {
    /// The kind, for people.
    fn named(&self) -> String {
        format!("{} {}", self.api_version, self.kind)
    }

    /// Takes away what the policy does not want to see.
    fn mask(&self, object: &mut Value) {
        if let Some(masks) = self.field_masks.as_ref().filter(|masks| !masks.is_empty()) {
            mask::apply(object, masks);
        }
    }
}

impl Host for Capabilities {
    fn call(
        &self,
        binding: &str,
        namespace: &str,
        operation: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, HostError> {
        if (binding, namespace, operation) == (BINDING, "tracing", "log") {
            let line = payload.get(..LONGEST_LINE).unwrap_or(payload);
            tracing::debug!(line = %String::from_utf8_lossy(line), "a policy logged");
            return Ok(Vec::new());
        }
        let call = Call {
            binding,
            namespace,
            operation,
        };
        let answer = self.answer(call, payload)?;
        Ok(answer.to_string().into_bytes())
    }
}

fn text(written: Option<&String>) -> Option<&str> {
    written.map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Gives the same answer to every question.
    #[derive(Debug)]
    struct Cluster(Result<Value, LookupError>);

    impl Lookup for Cluster {
        fn get(
            &self,
            _: &GroupVersionKind,
            _: Option<&str>,
            _: &str,
        ) -> Result<Value, LookupError> {
            self.0.clone()
        }

        fn list(
            &self,
            _: &GroupVersionKind,
            _: Option<&str>,
            _: Option<&str>,
            _: Option<&str>,
        ) -> Result<Value, LookupError> {
            let item = self.0.clone()?;
            Ok(json!({"kind": "PodList", "items": [item]}))
        }
    }

    fn call(
        path: [&str; 3],
        question: &Value,
        found: Result<Value, LookupError>,
    ) -> Result<Value, HostError> {
        let allowed = ["Pod", "Namespace"].map(|kind| GroupVersionKind::parse("v1", kind));
        let host = Capabilities::new(allowed.to_vec(), Arc::new(Cluster(found)));
        let [binding, namespace, operation] = path;
        let payload = question.to_string();
        let answer = host.call(binding, namespace, operation, payload.as_bytes())?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    #[test]
    fn the_module_gets_the_words_of_kubewarden() {
        let get = ["kubewarden", "kubernetes", "get_resource"];
        let pod = json!({"api_version": "v1", "kind": "Pod", "name": "p", "namespace": "n"});
        let map = json!({"api_version": "v1", "kind": "ConfigMap", "name": "c"});
        let reported = "The violation has been reported.";
        for (path, question, expected) in [
            (
                get,
                &map,
                format!(
                    "Policy has not been granted access to Kubernetes v1/ConfigMap resources. \
                     {reported}"
                ),
            ),
            (
                ["kubewarden", "oci", "v2/verify"],
                &pod,
                format!(
                    "Policy has not been granted access to the 'oci/v2/verify' host capability. \
                     {reported}"
                ),
            ),
            (
                ["kubewarden", "kubernetes", "can_i"],
                &pod,
                format!(
                    "Policy has not been granted access to the 'kubernetes/can_i' host \
                     capability. {reported}"
                ),
            ),
            (get, &pod, "Callback evaluation failure: away".into()),
            (
                get,
                &json!({"kind": "Pod"}),
                "missing field `api_version` at line 1 column 14".into(),
            ),
            (
                ["kubewarden", "kubernetes", "delete"],
                &pod,
                "unknown operation: delete".into(),
            ),
            (
                ["kubewarden", "cache", "get"],
                &pod,
                "unknown namespace: cache".into(),
            ),
            (
                ["other", "kubernetes", "get_resource"],
                &pod,
                "unknown binding: other".into(),
            ),
        ] {
            match call(path, question, Err(LookupError::transient("away"))) {
                Err(HostError::Unavailable(error)) => assert_eq!(error.text, expected),
                other => panic!("{path:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn lists_leave_out_what_a_single_object_has() {
        let applied = json!({LAST_APPLIED: "{}", "a": "b"});
        let pod = json!({"metadata": {"name": "p", "managedFields": [{}], "annotations": applied}});
        let question = json!({"api_version": "v1", "kind": "Pod", "name": "p", "namespace": "n"});
        let ask = |operation| {
            let path = ["kubewarden", "kubernetes", operation];
            call(path, &question, Ok(pod.clone())).unwrap()
        };
        let one = json!({"metadata": {"name": "p", "annotations": applied}});
        assert_eq!(ask("get_resource"), one);
        let item = json!({"metadata": {"name": "p", "annotations": {"a": "b"}}});
        for operation in ["list_resources_all", "list_resources_by_namespace"] {
            assert_eq!(ask(operation)["items"], json!([item]), "{operation}");
        }
    }
}
