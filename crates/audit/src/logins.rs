//! With whose logins, and under whose certificates, a policy's code is fetched: what its PolicyServer
//! says of it. Nothing that is secret is printed, and no Secret may start a program here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_policy::request;
use muster_registry::Credentials;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a PolicyServer says about the places where code comes from. Hosts are written as in a
/// reference: with their port, unless it is the usual one.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub(crate) credentials: Credentials,
    authorities: BTreeMap<String, String>,
    insecure: BTreeSet<String>,
    key: u64,
}

impl Sources {
    /// From the spec of a PolicyServer, and the Secret that it names for pulling. The error is for
    /// people.
    pub fn read(spec: &Value, secret: Option<&Value>) -> Result<Sources, String> {
        let mut covered = Vec::new();
        let credentials = match secret {
            Some(secret) => {
                let bytes = pull_secret(secret)?;
                let read = Credentials::from_secret(&bytes)
                    .map_err(|error| format!("cannot be used: {error}"))?;
                covered = bytes;
                read
            }
            None => Credentials::none(),
        };
        let texts = |value: &Value| -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let authorities: BTreeMap<String, String> = spec["sourceAuthorities"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(host, all)| (host.to_ascii_lowercase(), texts(all).join("\n")))
            .filter(|(_, all)| !all.is_empty())
            .collect();
        let insecure: BTreeSet<String> = texts(&spec["insecureSources"])
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect();
        covered.extend(format!("{authorities:?}{insecure:?}").bytes());
        Ok(Sources {
            credentials,
            authorities,
            insecure,
            key: request::hash(&covered),
        })
    }

    /// The certificates to trust for a host beside the usual ones, in PEM.
    pub fn authorities(&self, host: &str) -> Option<&str> {
        let host = host.to_ascii_lowercase();
        self.authorities.get(&host).map(String::as_str)
    }

    /// Whether a host is fetched from without TLS, or without checking its certificate.
    pub fn is_insecure(&self, host: &str) -> bool {
        self.insecure.contains(&host.to_ascii_lowercase())
    }

    /// Tells these sources from others, without telling them.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

/// One field of a Secret, as it is or as it was written in a manifest; none if it is not there or no
/// base64.
pub(crate) fn field(secret: &Value, name: &str) -> Option<Vec<u8>> {
    if let Some(text) = secret["stringData"].get(name).and_then(Value::as_str) {
        return Some(text.into());
    }
    let encoded = secret["data"].get(name)?.as_str()?;
    STANDARD.decode(encoded).ok()
}

/// The docker configuration of a pull secret: the type `kubernetes.io/dockerconfigjson` has the first
/// field, the older `kubernetes.io/dockercfg` the second.
fn pull_secret(secret: &Value) -> Result<Vec<u8>, String> {
    field(secret, ".dockerconfigjson")
        .or_else(|| field(secret, ".dockercfg"))
        .ok_or_else(|| {
            "has no .dockerconfigjson; it must be of the type kubernetes.io/dockerconfigjson".into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hosts_are_trusted_as_they_are_written() {
        let spec = json!({"insecureSources": ["Localhost:5000", 7],
            "sourceAuthorities": {"a.example": ["one", "two"], "b.example": []}});
        let sources = Sources::read(&spec, None).unwrap();
        assert!(sources.is_insecure("localhost:5000"));
        assert!(!sources.is_insecure("localhost"));
        assert_eq!(sources.authorities("A.example"), Some("one\ntwo"));
        assert_eq!(sources.authorities("b.example"), None);
        let nothing = Sources::read(&json!({}), None).unwrap();
        assert_ne!(nothing.key(), sources.key());
    }

    #[test]
    fn a_pull_secret_is_one_of_two_types_or_none() {
        let encoded = STANDARD.encode(r#"{"auths":{}}"#);
        for (secret, right) in [
            (json!({"data": {".dockerconfigjson": encoded}}), true),
            (json!({"stringData": {".dockercfg": "{}"}}), true),
            (json!({"data": {".dockerconfigjson": "?"}}), false),
            (
                json!({"stringData": {".dockerconfigjson": "secret"}}),
                false,
            ),
            (json!({"data": {"tls.crt": encoded}}), false),
            (json!({}), false),
        ] {
            let read = Sources::read(&json!({}), Some(&secret));
            assert_eq!(read.is_ok(), right, "{secret}");
            if let Err(why) = read {
                assert!(!why.contains("secret\""), "{why}");
            }
        }
    }
}
