//! The one WorkloadScanConfiguration, read once: which namespaces are looked at, where the findings
//! are kept, and how the registries are reached. Without one nothing is scanned.

use crate::access;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::DynamicObject;
use kube::core::Selector;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a configuration says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Configuration {
    selector: Selector,
    artifacts: String,
    pub(crate) scan_on_change: bool,
    /// The fields that every managed Registry has.
    pub(crate) connection: Map<String, Value>,
}

/// How often Registries are scanned.
const INTERVAL: &str = "scanInterval";
/// The fields that are handed on to Registries.
pub(crate) const HANDED_ON: [&str; 5] =
    [INTERVAL, "authSecret", "caBundle", "insecure", "platforms"];

/// The fields of a spec that a configuration hands on to Registries, as far as they say anything.
pub(crate) fn connection(spec: &Value) -> Map<String, Value> {
    let mut connection = Map::new();
    for field in HANDED_ON {
        match &spec[field] {
            Value::Null | Value::Bool(false) => {}
            Value::String(text) if text.is_empty() => {}
            value => drop(connection.insert(field.into(), value.clone())),
        }
    }
    connection
}

/// Those of them that decide what is found, and not only when.
pub(crate) fn reach(mut connection: Map<String, Value>) -> Map<String, Value> {
    connection.remove(INTERVAL);
    connection
}

impl Configuration {
    /// Reads a configuration; none if it says that nothing is to be scanned.
    pub(crate) fn read(object: &DynamicObject) -> Result<Option<Configuration>, String> {
        let spec = &object.data["spec"];
        if spec["enabled"] == false || object.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let selector: Option<LabelSelector> =
            Deserialize::deserialize(&spec["namespaceSelector"]).map_err(|e| e.to_string())?;
        let selector = selector.unwrap_or_default();
        Ok(Some(Configuration {
            selector: Selector::try_from(selector).map_err(|error| error.to_string())?,
            artifacts: spec["artifactsNamespace"]
                .as_str()
                .unwrap_or_default()
                .into(),
            scan_on_change: spec["scanOnChange"] != false,
            connection: connection(spec),
        }))
    }

    /// Whether a namespace with these labels is looked at.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        use kube::core::SelectorExt;
        self.selector.matches(labels)
    }

    /// The platforms that are scanned, on one line.
    pub(crate) fn platforms(&self) -> String {
        let wanted = self.connection.get("platforms").and_then(Value::as_array);
        access::platforms(wanted.map(Vec::as_slice).unwrap_or_default())
    }

    /// Where the Registries for the workloads of a namespace are.
    pub(crate) fn home<'a>(&'a self, namespace: &'a str) -> &'a str {
        match self.artifacts.as_str() {
            "" => namespace,
            artifacts => artifacts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(spec: Value) -> Option<Configuration> {
        let object = json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanConfiguration",
            "metadata": {"name": "default"}, "spec": spec,
        });
        Configuration::read(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn without_a_word_everything_is_scanned_at_once() {
        let configuration = read(json!({})).unwrap();
        assert!(configuration.scan_on_change && configuration.selects(&BTreeMap::new()));
        assert_eq!(configuration.home("team-a"), "team-a");
        assert!(configuration.connection.is_empty());
        assert!(read(json!({"enabled": false})).is_none());
    }

    #[test]
    fn every_field_of_the_configuration_is_heeded() {
        let configuration = read(json!({
            "enabled": true, "scanOnChange": false, "artifactsNamespace": "art",
            "namespaceSelector": {
                "matchLabels": {"environment": "production"},
                "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}],
            },
            "scanInterval": "24h", "authSecret": "credentials", "caBundle": "", "insecure": true,
            "platforms": [{"os": "linux", "architecture": "arm64"}],
        }))
        .unwrap();
        assert!(!configuration.scan_on_change);
        assert_eq!(configuration.home("team-a"), "art");
        let labels = |of: &[(&str, &str)]| {
            of.iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        for (given, selected) in [
            (labels(&[]), false),
            (labels(&[("environment", "production")]), true),
            (
                labels(&[("environment", "production"), ("team", "y")]),
                true,
            ),
            (
                labels(&[("environment", "production"), ("team", "x")]),
                false,
            ),
        ] {
            assert_eq!(configuration.selects(&given), selected, "{given:?}");
        }
        assert_eq!(
            json!(configuration.connection),
            json!({
                "scanInterval": "24h", "authSecret": "credentials", "insecure": true,
                "platforms": [{"os": "linux", "architecture": "arm64"}],
            })
        );
        assert!(!reach(configuration.connection).contains_key(INTERVAL));
    }
}
