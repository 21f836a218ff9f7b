//! Desks as policies make them, for tests.

use super::settle::{desks_of, kind};
use super::{ConfigMetrics, ConfigSettings, Desk};
use crate::ledger::Place;
use crate::scope::Scope;
use muster_checks::Kind;
use muster_checks::force::{Choice, Force, Sources};
use muster_checks::written::Written;
use muster_policy::Served;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Settings of an audit of everything through a client.
pub(super) fn settings(client: kube::Client) -> ConfigSettings {
    ConfigSettings {
        home: client.clone(),
        cluster: client,
        installation: "muster".into(),
        namespaces: Vec::new(),
        scope: Scope::default(),
        choice: Choice::default(),
        skip_labels: Default::default(),
        exceptions: true,
        all: false,
        parallel: 1,
        requests_per_second: 0,
        verify: Duration::from_secs(3600),
        metrics: ConfigMetrics::default(),
    }
}

/// What is in force: policies by name, kinds and message, and one library.
pub(super) fn force(policies: &[[&str; 3]], library: &str, kinds: &[Kind]) -> Force {
    let mut data = BTreeMap::new();
    for [name, kinds, message] in policies {
        let text = format!("package main\nimport rego.v1\ndeny contains \"{message}\" if true");
        data.insert(format!("policy.{name}.rego"), text);
        data.insert(format!("policy.{name}.kinds"), (*kinds).to_owned());
    }
    let library = format!("package words\nimport rego.v1\nword := \"{library}\"");
    data.insert("library.words.rego".into(), library);
    let written = Written::read("policies", Some("v2"), &data);
    let mut force = Force::default();
    let sources = Sources::from([("muster/policies".into(), written)]);
    force.update(&sources, kinds, &Choice::default());
    assert!(force.troubles().is_empty(), "{:?}", force.troubles());
    force
}

/// Resources, as `apps/v1 Deployment`.
pub(super) fn served(names: &[&str]) -> Vec<Served> {
    let served = names.iter().map(|name| {
        let (api_version, kind) = name.split_once(' ').unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Served {
            group: group.into(),
            resource: format!("{}s", kind.to_lowercase()),
            kind: kind.into(),
            namespaced: true,
            versions: vec![version.into()],
        }
    });
    served.collect()
}

/// Who judges what.
pub(super) fn desks(policies: &[[&str; 3]], library: &str, names: &[&str]) -> HashMap<Place, Desk> {
    let served = served(names);
    let kinds: Vec<Kind> = served.iter().map(kind).collect();
    desks_of(
        &force(policies, library, &kinds),
        &served,
        &kinds,
        &Scope::default(),
    )
}
