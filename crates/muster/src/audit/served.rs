//! What a manifest's kind is served as: its plural name and whether it lives in namespaces. A cluster
//! says so itself. Without one it is known for Kubernetes' own kinds and ours, said by the
//! CustomResourceDefinitions among the manifests, and guessed for the rest.

use muster_kind::Kind;
use muster_policy::Served;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Kubernetes' kinds that `muster up` does not serve: group, versions, kind, plural name and scope.
const FURTHER: &str = "\
- v1 Endpoints endpoints namespaced
- v1 PodTemplate podtemplates namespaced
admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster
apiregistration.k8s.io v1 APIService apiservices cluster
apps v1 ControllerRevision controllerrevisions namespaced
autoscaling v2,v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced
certificates.k8s.io v1 CertificateSigningRequest certificatesigningrequests cluster
discovery.k8s.io v1 EndpointSlice endpointslices namespaced
events.k8s.io v1 Event events namespaced
flowcontrol.apiserver.k8s.io v1 FlowSchema flowschemas cluster
flowcontrol.apiserver.k8s.io v1 PriorityLevelConfiguration prioritylevelconfigurations cluster
gateway.networking.k8s.io v1 Gateway gateways namespaced
gateway.networking.k8s.io v1 GatewayClass gatewayclasses cluster
networking.k8s.io v1 IngressClass ingressclasses cluster
node.k8s.io v1 RuntimeClass runtimeclasses cluster
scheduling.k8s.io v1 PriorityClass priorityclasses cluster
storage.k8s.io v1 CSIDriver csidrivers cluster
storage.k8s.io v1 CSINode csinodes cluster
storage.k8s.io v1 CSIStorageCapacity csistoragecapacities namespaced
storage.k8s.io v1 StorageClass storageclasses cluster
storage.k8s.io v1 VolumeAttachment volumeattachments cluster
";

/// What is served.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    known: HashMap<(String, String), Served>,
    /// As manifests of a version see it: theirs is the preferred one.
    written: HashMap<(String, String, String), Arc<Served>>,
}

/// What a manifest is served as.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) served: Arc<Served>,
    /// Nobody said so.
    pub(super) is_guess: bool,
}

impl Catalog {
    /// What is known without a cluster.
    pub(super) fn offline() -> Self {
        let mut catalog = Catalog::default();
        let kinds = muster_api::builtin::builtin().into_iter();
        for kind in kinds.chain(muster_api::kinds()) {
            catalog.add(of_kind(kind));
        }
        FURTHER
            .lines()
            .filter_map(of_line)
            .for_each(|served| catalog.add(served));
        catalog
    }

    /// What a cluster says.
    pub(super) fn discovered(served: &[Served]) -> Self {
        let mut catalog = Catalog::default();
        for one in served {
            catalog.add(one.clone());
        }
        catalog
    }

    fn add(&mut self, served: Served) {
        let key = (served.group.clone(), served.kind.clone());
        self.known.entry(key).or_insert(served);
    }

    /// Learns a CustomResourceDefinition; whatever else the object is, is left alone.
    pub(super) fn define(&mut self, object: &Value) {
        let is_definition = object["kind"] == "CustomResourceDefinition"
            && object["apiVersion"] == "apiextensions.k8s.io/v1";
        let spec = &object["spec"];
        let text = |at: &str| spec.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let names = (text("/group"), text("/names/kind"), text("/names/plural"));
        let (true, (Some(group), Some(kind), Some(resource))) = (is_definition, names) else {
            return;
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        let versions = versions.filter(|version| version["served"] != false);
        self.add(Served {
            group,
            resource,
            kind,
            namespaced: spec["scope"] != "Cluster",
            versions: versions
                .filter_map(|version| version["name"].as_str().map(str::to_owned))
                .collect(),
        });
    }

    /// Everything, with what manifests are taken for that nobody knows.
    pub(super) fn all(&self) -> Vec<Served> {
        let mut all: BTreeMap<_, &Served> = self.known.iter().collect();
        let guessed: Vec<_> = self
            .written
            .values()
            .map(|served| ((served.group.clone(), served.kind.clone()), &**served))
            .collect();
        for (key, served) in &guessed {
            all.entry(key).or_insert(served);
        }
        all.into_values().cloned().collect()
    }

    /// What the object of a manifest is served as.
    pub(super) fn of(&mut self, object: &Value) -> Found {
        let text = |at: &str| object[at].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let key = (group.to_owned(), kind.to_owned());
        let is_guess = !self.known.contains_key(&key);
        let has_namespace = object.pointer("/metadata/namespace").is_some();
        let written = (group.to_owned(), kind.to_owned(), version.to_owned());
        let known = &self.known;
        let served = self.written.entry(written).or_insert_with(|| {
            let mut served = match known.get(&key) {
                Some(served) => served.clone(),
                None => guess(group, kind, has_namespace),
            };
            served.versions.retain(|other| other != version);
            served.versions.insert(0, version.into());
            Arc::new(served)
        });
        let served = served.clone();
        Found { served, is_guess }
    }
}

fn of_kind(kind: Kind) -> Served {
    Served {
        namespaced: kind.is_namespaced(),
        group: kind.group,
        resource: kind.plural,
        kind: kind.kind,
        versions: kind.versions,
    }
}

fn of_line(line: &str) -> Option<Served> {
    let mut words = line.split(' ').map(str::to_owned);
    let mut next = || words.next();
    Some(Served {
        group: next()?.trim_matches('-').into(),
        versions: next()?.split(',').map(str::to_owned).collect(),
        kind: next()?,
        resource: next()?,
        namespaced: next()? == "namespaced",
    })
}

/// As most people name their kinds.
fn guess(group: &str, kind: &str, has_namespace: bool) -> Served {
    let lower = kind.to_lowercase();
    let has_vowel = |text: &str| text.ends_with(['a', 'e', 'i', 'o', 'u']);
    let resource = match lower.strip_suffix('y') {
        Some(stem) if !has_vowel(stem) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"]
            .iter()
            .any(|end| lower.ends_with(end)) =>
        {
            format!("{lower}es")
        }
        _ => format!("{lower}s"),
    };
    Served {
        group: group.into(),
        resource,
        kind: kind.into(),
        namespaced: has_namespace || !kind.starts_with("Cluster"),
        versions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kind_is_known_or_defined_or_guessed() {
        let mut catalog = Catalog::offline();
        catalog.define(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"group": "example.org", "scope": "Cluster",
                "names": {"kind": "Mouse", "plural": "mice"},
                "versions": [{"name": "v1", "served": true}, {"name": "v0", "served": false}]},
        }));
        for (api_version, kind, resource, namespaced, versions, is_guess) in [
            ("v1", "Pod", "pods", true, &["v1"][..], false),
            (
                "networking.k8s.io/v1",
                "Ingress",
                "ingresses",
                true,
                &["v1"],
                false,
            ),
            (
                "storage.k8s.io/v1",
                "StorageClass",
                "storageclasses",
                false,
                &["v1"],
                false,
            ),
            (
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
                true,
                &["v1", "v2"],
                false,
            ),
            (
                "policies.kubewarden.io/v1",
                "ClusterAdmissionPolicy",
                "clusteradmissionpolicies",
                false,
                &["v1"],
                false,
            ),
            ("example.org/v1", "Mouse", "mice", false, &["v1"], false),
            ("example.org/v1", "Gateway", "gateways", true, &["v1"], true),
            ("example.org/v1", "Proxy", "proxies", true, &["v1"], true),
            (
                "example.org/v2",
                "ClusterBox",
                "clusterboxes",
                false,
                &["v2"],
                true,
            ),
            // A kind of the same name in another group is another kind.
            ("example.org/v1", "Pod", "pods", true, &["v1"], true),
        ] {
            let found = catalog.of(&json!({"apiVersion": api_version, "kind": kind}));
            let served = &found.served;
            assert_eq!(
                (served.resource.as_str(), served.namespaced, found.is_guess),
                (resource, namespaced, is_guess),
                "{api_version} {kind}"
            );
            assert_eq!(served.versions, versions, "{api_version} {kind}");
        }
    }
}
