//! What a policy is asked: may this object be created? It is the request that an API server would
//! send to an admission webhook, made from an object that is already there. What only the server
//! writes (the status, the revision, who manages which field) is left out, as it is not yet there when
//! an object is created; so the answer depends on nothing but what [`Request::hash`] covers.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A kind, in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// From an `apiVersion` and a kind.
    pub fn parse(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        GroupVersionKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Whether it is the kind of Secrets.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// Group and version as objects write them.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// The creation of an object, simulated.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The plural name under which it is served.
    pub resource: String,
    /// The namespace of the object, if it has one; a Namespace is in itself.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its identity; empty for an object that was never stored.
    pub uid: String,
    /// The object as it would be created.
    pub object: Value,
    /// The whole request, as policies read it.
    json: Vec<u8>,
    hash: u64,
}

impl Request {
    /// The creation of `object`, which is served as `resource`.
    pub fn create(resource: &str, mut object: Value) -> Self {
        let text = |at: &str| {
            let found = object.pointer(at).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let kind = GroupVersionKind::parse(&text("/apiVersion"), &text("/kind"));
        let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
        // API servers say of a Namespace that it is created in itself.
        let namespace = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Namespace") => name.clone(),
            _ => text("/metadata/namespace"),
        };
        let namespace = Some(namespace).filter(|name| !name.is_empty());
        strip(&mut object);
        let kinds = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let resources = json!({"group": kind.group, "version": kind.version, "resource": resource});
        let mut request = Map::new();
        request.insert("uid".into(), uid.as_str().into());
        request.insert("kind".into(), kinds.clone());
        request.insert("resource".into(), resources.clone());
        request.insert("requestKind".into(), kinds);
        request.insert("requestResource".into(), resources);
        request.insert("name".into(), name.as_str().into());
        if let Some(namespace) = &namespace {
            request.insert("namespace".into(), namespace.as_str().into());
        }
        request.insert("operation".into(), "CREATE".into());
        request.insert("userInfo".into(), json!({}));
        request.insert("dryRun".into(), false.into());
        request.insert("object".into(), object);
        let whole = Value::Object(request);
        let json = whole.to_string().into_bytes();
        let hash = hash(&json);
        let object = match whole {
            Value::Object(mut request) => request.remove("object").unwrap_or_default(),
            _ => Value::Null,
        };
        Request {
            kind,
            resource: resource.into(),
            namespace,
            name,
            uid,
            object,
            json,
            hash,
        }
    }

    /// The request as JSON: the `request` of an AdmissionReview.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Covers everything that a policy is told: as long as it is the same, so is the answer.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The labels of the object.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.object.pointer("/metadata/labels");
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

/// The first eight bytes of the SHA-256 of something.
pub fn hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .take(8)
        .fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Takes away what is not there when an object is created.
fn strip(object: &mut Value) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation", "selfLink"] {
            metadata.remove(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(changes: Value) -> Value {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "managedFields": [{}], "labels": {"a": "b"}},
            "spec": {"containers": []}, "status": {"phase": "Running"},
        });
        for (pointer, value) in changes.as_object().unwrap() {
            *pod.pointer_mut(pointer).unwrap() = value.clone();
        }
        pod
    }

    #[test]
    fn a_request_is_what_a_webhook_would_be_sent() {
        let request = Request::create("pods", pod(json!({})));
        let said: Value = serde_json::from_slice(request.json()).unwrap();
        let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
        let resource = json!({"group": "", "version": "v1", "resource": "pods"});
        assert_eq!(
            said,
            json!({
                "uid": "u", "kind": kind, "requestKind": kind,
                "resource": resource, "requestResource": resource,
                "name": "p", "namespace": "n", "operation": "CREATE", "userInfo": {},
                "dryRun": false,
                "object": {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
                    "spec": {"containers": []}},
            })
        );
        assert_eq!(request.object, said["object"]);
        assert_eq!(request.labels().collect::<Vec<_>>(), [("a", "b")]);
    }

    #[test]
    fn a_namespace_is_in_itself() {
        for (api_version, kind, namespace) in [
            ("v1", "Namespace", json!("a")),
            ("v1", "Node", Value::Null),
            ("example.com/v1", "Namespace", Value::Null),
        ] {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            let request = Request::create("things", object);
            let said: Value = serde_json::from_slice(request.json()).unwrap();
            assert_eq!(said["namespace"], namespace, "{kind}");
            assert_eq!(request.namespace.as_deref(), namespace.as_str(), "{kind}");
        }
    }

    #[test]
    fn only_what_policies_see_changes_the_hash() {
        let plain = Request::create("pods", pod(json!({}))).hash();
        for (change, changes) in [
            (json!({"/status": {"phase": "Failed"}}), false),
            (json!({"/metadata/resourceVersion": "8"}), false),
            (json!({"/metadata/managedFields": []}), false),
            (json!({"/metadata/labels": {"a": "c"}}), true),
            (json!({"/spec": {}}), true),
        ] {
            let other = Request::create("pods", pod(change.clone())).hash();
            assert_eq!(other != plain, changes, "{change}");
        }
    }
}
