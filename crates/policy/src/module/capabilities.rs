//! What a module may ask while it judges. It may log, and it may read of the cluster the kinds that its
//! policy names; everything else that Kubewarden's hosts offer is refused. A refusal is an answer to the
//! module, which decides what to make of it; here it is remembered, so that a policy that fails because
//! of it is understood.

use super::mask;
use crate::evaluate::Lookup;
use crate::request::GroupVersionKind;
use muster_wasm::Host;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The binding under which Kubewarden's hosts are called.
const BINDING: &str = "kubewarden";
/// The longest line that is logged, in bytes.
const LONGEST_LINE: usize = 4096;

/// What the modules of one policy may ask.
#[derive(Debug)]
pub(super) struct Capabilities {
    allowed: Vec<GroupVersionKind>,
    lookup: Arc<dyn Lookup>,
}

/// The questions of one evaluation.
pub(super) struct Session {
    capabilities: Arc<Capabilities>,
    refusal: Mutex<Option<String>>,
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

    fn answer(&self, namespace: &str, operation: &str, payload: &[u8]) -> Result<Value, String> {
        match (namespace, operation) {
            ("kubernetes", "get_resource") => self.get(&read(payload)?),
            ("kubernetes", "list_resources_by_namespace") => {
                let question = read(payload)?;
                match text(question.namespace.as_ref()) {
                    Some(namespace) => self.list(&question, Some(namespace)),
                    None => Err("it names no namespace".into()),
                }
            }
            ("kubernetes", "list_resources_all") => self.list(&read(payload)?, None),
            ("kubernetes", "can_i") => Err("permissions are not looked up in an audit".into()),
            ("oci", _) => Err("registries and signatures are not looked up in an audit".into()),
            ("net", _) => Err("the network is not looked at in an audit".into()),
            ("crypto", _) => Err("certificates are not verified in an audit".into()),
            _ => Err("nothing is known by that name".into()),
        }
    }

    fn get(&self, question: &Question) -> Result<Value, String> {
        let kind = self.kind(question)?;
        let Some(name) = text(question.name.as_ref()) else {
            return Err("it names no object".into());
        };
        let namespace = text(question.namespace.as_ref());
        let found = self.lookup.get(&kind, namespace, name)?;
        let mut object = found.ok_or_else(|| {
            let place = namespace.map(|namespace| format!(" in namespace {namespace:?}"));
            let place = place.unwrap_or_default();
            format!("there is no {} {name:?}{place}", kind.kind)
        })?;
        shorten(&mut object, question);
        Ok(object)
    }

    fn list(&self, question: &Question, namespace: Option<&str>) -> Result<Value, String> {
        let kind = self.kind(question)?;
        let labels = text(question.label_selector.as_ref());
        let fields = text(question.field_selector.as_ref());
        let mut list = self.lookup.list(&kind, namespace, labels, fields)?;
        if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
            for item in items {
                shorten(item, question);
            }
        }
        Ok(list)
    }

    /// The kind that is asked for, if the policy may read it.
    fn kind(&self, question: &Question) -> Result<GroupVersionKind, String> {
        let kind = GroupVersionKind::parse(&question.api_version, &question.kind);
        // Whoever audits may read more than whoever reads reports, and a policy can say what it saw.
        if kind.is_secret() {
            return Err("Secrets are not looked up in an audit".into());
        }
        match self.allowed.contains(&kind) {
            true => Ok(kind),
            false => Err(format!(
                "{} {} is not among the contextAwareResources of the policy",
                question.api_version, question.kind
            )),
        }
    }
}

impl Session {
    pub(super) fn new(capabilities: Arc<Capabilities>) -> Self {
        Session {
            capabilities,
            refusal: Mutex::new(None),
        }
    }

    /// The last question that was not answered, and why.
    pub(super) fn last_refusal(&self) -> Option<String> {
        self.refusal.lock().ok()?.clone()
    }
}

impl Host for Session {
    fn call(
        &self,
        binding: &str,
        namespace: &str,
        operation: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, String> {
        if (binding, namespace, operation) == (BINDING, "tracing", "log") {
            let line = payload.get(..LONGEST_LINE).unwrap_or(payload);
            tracing::debug!(line = %String::from_utf8_lossy(line), "a policy logged");
            return Ok(Vec::new());
        }
        let answer = match binding {
            BINDING => self.capabilities.answer(namespace, operation, payload),
            _ => Err("nothing is known by that name".into()),
        };
        let called = match binding {
            BINDING => format!("{namespace}/{operation}"),
            _ => format!("{binding}/{namespace}/{operation}"),
        };
        answer
            .map(|answer| answer.to_string().into_bytes())
            .map_err(|why| {
                let refusal = format!("the host call {called} was refused: {why}");
                if let Ok(mut last) = self.refusal.lock() {
                    *last = Some(refusal.clone());
                }
                refusal
            })
    }
}

fn read(payload: &[u8]) -> Result<Question, String> {
    serde_json::from_slice(payload).map_err(|error| format!("it does not make sense: {error}"))
}

fn text(written: Option<&String>) -> Option<&str> {
    written.map(String::as_str).filter(|text| !text.is_empty())
}

/// Takes away what the policy does not want to see, and what none wants to.
fn shorten(object: &mut Value, question: &Question) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if let Some(masks) = question
        .field_masks
        .as_ref()
        .filter(|masks| !masks.is_empty())
    {
        mask::apply(object, masks);
    }
}
