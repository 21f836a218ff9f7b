//! The Registries that the workload scan makes: their names, and what is to be done to one so that it
//! holds what is wanted. A Registry is always written as a whole on top of what was read, and only if
//! nobody else wrote meanwhile, so several writers lose nothing.

use super::configuration::{Configuration, HANDED_ON, connection, reach};
use super::ladder::{self, Holdings};
use super::report::hash;
use crate::access::host_of;
use crate::object::REGISTRY;
use crate::registry::targets::{REQUEST, Targets};
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::guard::{MANAGED_BY, MANAGER, WORKLOAD_SCAN};
use muster_registry::Host;
use serde_json::{Value, json};

/// How the names of our Registries begin.
const PREFIX: &str = "workload-scan-";
/// The longest request for a scan of single images; what is longer asks for all.
const LONGEST_REQUEST: usize = 64 * 1024;

/// What is to be done to a Registry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// It is as it should be.
    Nothing,
    Create(Value),
    Replace(Box<DynamicObject>),
    Delete,
    /// It is going, and another can only be made once it is gone.
    Wait,
    /// It has the name that we would use, and somebody else made it.
    Foreign,
}

/// The name of the Registry of a host. Letters, digits and dots stay readable; what else there is
/// would make two hosts one, so a hash is added.
pub(crate) fn name(host: &Host) -> String {
    const READABLE: usize = 200;
    let host = host.as_str();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let readable: String = host
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    let is_exact = host.chars().all(|c| plain(c) || c == '.') && host.len() <= READABLE;
    match is_exact {
        true => format!("{PREFIX}{readable}"),
        false => {
            let cut: String = readable.chars().take(READABLE).collect();
            // A dot is in no plain name, so none can be made to look like this one.
            format!("{PREFIX}{}.{}", cut.trim_matches('-'), hash(&[host]))
        }
    }
}

/// What a Registry holds.
pub(crate) fn holdings(object: &DynamicObject) -> Holdings {
    ladder::read(&object.data["spec"]["repositories"])
}

/// What has to be done so that a Registry holds this.
pub(crate) fn deed(
    present: Option<&DynamicObject>,
    namespace: &str,
    name: &str,
    host: Option<&Host>,
    wanted: &Holdings,
    configuration: Option<&Configuration>,
) -> Deed {
    let Some(present) = present else {
        return match (host, configuration) {
            (Some(host), Some(configuration)) if !wanted.is_empty() => {
                Deed::Create(fresh(namespace, name, host, wanted, configuration))
            }
            _ => Deed::Nothing,
        };
    };
    let is_its = |host: &Host| host_of(present).as_ref() == Some(host);
    if !is_ours(present) || !host.is_none_or(is_its) {
        return match wanted.is_empty() {
            true => Deed::Nothing,
            false => Deed::Foreign,
        };
    }
    if present.metadata.deletion_timestamp.is_some() {
        return match wanted.is_empty() {
            true => Deed::Nothing,
            false => Deed::Wait,
        };
    }
    let (Some(configuration), false) = (configuration, wanted.is_empty()) else {
        return Deed::Delete;
    };
    let mut object = present.clone();
    object.data["spec"] = respelled(&present.data["spec"], wanted, configuration);
    if object.data["spec"] == present.data["spec"] {
        return Deed::Nothing;
    }
    let before = holdings(present);
    let reached = reach(connection(&present.data["spec"]));
    let targets = match reached == reach(configuration.connection.clone()) {
        true => ladder::added(&before, wanted),
        false => Some(Targets::All),
    };
    if let Some(targets) = targets.filter(|_| configuration.scan_on_change) {
        let annotations = object.metadata.annotations.get_or_insert_default();
        let asked = annotations.get(REQUEST).map(|text| Targets::parse(text));
        let targets = asked.map_or(targets.clone(), |asked| asked.unite(targets));
        let request = targets.request();
        let request = match request.len() <= LONGEST_REQUEST {
            true => request,
            false => Targets::All.request(),
        };
        annotations.insert(REQUEST.into(), request);
    }
    Deed::Replace(Box::new(object))
}

/// Whether the workload scan made a Registry. One that only looks a little like it stays.
pub(crate) fn is_ours(object: &DynamicObject) -> bool {
    let labels = object.labels();
    let has = |key: &str, value: &str| labels.get(key).is_some_and(|found| found == value);
    let is_marked = has(WORKLOAD_SCAN, "true") && has(MANAGED_BY, MANAGER);
    is_marked && object.name_any().starts_with(PREFIX)
}

/// The spec with what is ours to say; what the server has filled in stays.
fn respelled(spec: &Value, wanted: &Holdings, configuration: &Configuration) -> Value {
    let mut spec = spec.clone();
    if connection(&spec) != configuration.connection {
        for field in HANDED_ON {
            spec.as_object_mut().map(|spec| spec.remove(field));
        }
        for (field, value) in &configuration.connection {
            spec[field] = value.clone();
        }
    }
    if ladder::read(&spec["repositories"]) != *wanted {
        spec["repositories"] = ladder::spell(wanted);
    }
    spec
}

fn fresh(
    namespace: &str,
    name: &str,
    host: &Host,
    wanted: &Holdings,
    configuration: &Configuration,
) -> Value {
    let mut object = json!({
        "apiVersion": REGISTRY.api_version(), "kind": REGISTRY.kind,
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, WORKLOAD_SCAN: "true"},
        },
        "spec": {
            "uri": host.as_str(), "catalogType": "NoCatalog",
            "repositories": ladder::spell(wanted),
        },
    });
    for (field, value) in &configuration.connection {
        object["spec"][field] = value.clone();
    }
    if configuration.scan_on_change {
        object["metadata"]["annotations"] = json!({REQUEST: ""});
    }
    object
}

#[cfg(test)]
mod tests {
    use super::super::ladder::Wish;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn configuration(spec: Value) -> Configuration {
        let object = json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanConfiguration",
            "metadata": {"name": "default"}, "spec": spec,
        });
        let read = Configuration::read(&serde_json::from_value(object).unwrap());
        read.unwrap().unwrap()
    }

    fn holding(tags: &[&str]) -> Holdings {
        let held = tags
            .iter()
            .map(|tag| (Wish::Tag((*tag).into()), BTreeSet::from(["a".to_owned()])));
        let held: BTreeMap<_, _> = held.collect();
        match held.is_empty() {
            true => Holdings::new(),
            false => Holdings::from([("app".into(), held)]),
        }
    }

    fn host() -> Host {
        Host::parse("ghcr.io").unwrap()
    }

    fn judge(
        present: Option<&DynamicObject>,
        tags: &[&str],
        configuration: Option<&Configuration>,
    ) -> Deed {
        let wanted = holding(tags);
        deed(
            present,
            "art",
            "workload-scan-ghcr-io",
            Some(&host()),
            &wanted,
            configuration,
        )
    }

    fn made(configuration: &Configuration) -> DynamicObject {
        let Deed::Create(object) = judge(None, &["1"], Some(configuration)) else {
            panic!("it is created")
        };
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_host_is_readable_in_the_name_of_its_registry() {
        for (host, name) in [
            ("ghcr.io", "workload-scan-ghcr-io"),
            ("index.docker.io", "workload-scan-docker-io"),
            ("GHCR.IO", "workload-scan-ghcr-io"),
            ("10.0.0.1", "workload-scan-10-0-0-1"),
        ] {
            assert_eq!(super::name(&Host::parse(host).unwrap()), name);
        }
        let odd = [
            "a-b.io",
            "a.b.io",
            "a.b:443",
            "a.b:4430",
            "[::1]:5000",
            "a-b:443",
            // Made to look like another's.
            &format!("a.b.io.{}", hash(&["a-b.io"])),
        ];
        let names = odd.map(|host| super::name(&Host::parse(host).unwrap()));
        let different: BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), odd.len(), "{names:?}");
        for name in &names {
            let faults = muster_kind::name::subdomain(name);
            assert!(faults.is_empty(), "{name}: {faults:?}");
        }
    }

    #[test]
    fn a_registry_is_made_with_what_the_configuration_says() {
        let configuration = configuration(json!({
            "scanInterval": "1h", "insecure": true, "authSecret": "s",
            "platforms": [{"os": "linux", "architecture": "amd64"}],
        }));
        let object = made(&configuration);
        let spec = &object.data["spec"];
        assert_eq!(spec["uri"], "ghcr.io");
        assert_eq!(spec["catalogType"], "NoCatalog");
        assert_eq!(spec["platforms"][0]["architecture"], "amd64");
        assert_eq!(holdings(&object), holding(&["1"]));
        assert!(is_ours(&object));
        assert_eq!(object.metadata.annotations.unwrap()[REQUEST], "");
    }

    #[test]
    fn what_is_as_it_should_be_is_left_alone() {
        let plain = configuration(json!({}));
        let mut present = made(&plain);
        // The server fills in what is not said.
        present.data["spec"]["insecure"] = json!(false);
        present.data["spec"]["scanOnChange"] = json!(true);
        assert_eq!(judge(Some(&present), &["1"], Some(&plain)), Deed::Nothing);
        assert_eq!(judge(None, &[], Some(&plain)), Deed::Nothing);
        assert_eq!(judge(None, &["1"], None), Deed::Nothing);
        for configuration in [Some(&plain), None] {
            assert_eq!(judge(Some(&present), &[], configuration), Deed::Delete);
        }
        assert_eq!(judge(Some(&present), &["1"], None), Deed::Delete);
        present.data["spec"]["uri"] = json!("other.example");
        assert_eq!(judge(Some(&present), &["1"], Some(&plain)), Deed::Foreign);
        present.data["spec"]["uri"] = json!("ghcr.io");
        present.metadata.labels = Some(BTreeMap::from([(MANAGED_BY.into(), MANAGER.into())]));
        assert_eq!(judge(Some(&present), &[], Some(&plain)), Deed::Nothing);
        assert_eq!(judge(Some(&present), &["1"], Some(&plain)), Deed::Foreign);
    }

    #[test]
    fn what_is_new_is_asked_for_together_with_what_was() {
        let plain = configuration(json!({}));
        let request = |present: &DynamicObject, tags: &[&str], spec: Value| {
            let configuration = configuration(spec);
            match judge(Some(present), tags, Some(&configuration)) {
                Deed::Replace(object) => object.metadata.annotations.unwrap().remove(REQUEST),
                other => panic!("{other:?}"),
            }
        };
        let mut present = made(&plain);
        present.metadata.annotations = Some(BTreeMap::new());
        let one = r#"{"repositories":[{"matchConditions":["tag-2"],"name":"app"}]}"#;
        assert_eq!(
            request(&present, &["1", "2"], json!({})).as_deref(),
            Some(one)
        );
        // What goes, or when scans are due, is no reason to scan.
        assert_eq!(
            request(&present, &["1"], json!({"scanInterval": "1h"})),
            None
        );
        assert_eq!(
            request(&present, &["1", "2"], json!({"scanOnChange": false})),
            None
        );
        let all = request(&present, &["1"], json!({"insecure": true}));
        assert_eq!(all.as_deref(), Some(""));
        let many: Vec<String> = (0..5000).map(|number| format!("a-tag-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(request(&present, &many, json!({})).as_deref(), Some(""));
        let asked = BTreeMap::from([(REQUEST.to_owned(), one.to_owned())]);
        present.metadata.annotations = Some(asked);
        let both = r#"{"repositories":[{"matchConditions":["tag-2","tag-3"],"name":"app"}]}"#;
        assert_eq!(
            request(&present, &["1", "3"], json!({})).as_deref(),
            Some(both)
        );
    }
}
