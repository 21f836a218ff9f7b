//! Policies in ConfigMaps, the same in every run: of ten seven are about one kind, two about workloads
//! and one about everything. About one in eight finds something; all use a library.

use super::cluster;
use anyhow::{Context, Result, ensure};
use muster_checks::Sheet;
use muster_checks::force::{Choice, Force, Sources};
use muster_checks::written::{LABEL, Written};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the ConfigMaps are.
pub(super) const NAMESPACE: &str = "muster";
/// How many policies one ConfigMap has.
const TOGETHER: usize = 25;

const KUBERNETES: &str = "package bench.kubernetes

import rego.v1

pod := input.spec if input.kind == \"Pod\"

pod := input.spec.jobTemplate.spec.template.spec if input.kind == \"CronJob\"

pod := input.spec.template.spec if not input.kind in {\"Pod\", \"CronJob\"}

containers contains container if {
	some field in [\"containers\", \"initContainers\"]
	some container in object.get(pod, field, [])
}
";

const LABELS: &str = "package bench.labels

import rego.v1

value(name) := object.get(object.get(input.metadata, \"labels\", {}), name, \"\")
";

/// What policies are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// The kinds that each is about.
    Kinds,
    /// Everything, whatever it is about.
    Everything,
}

/// A ConfigMap with policies or libraries.
pub(super) struct Map {
    name: String,
    data: BTreeMap<String, String>,
}

impl Map {
    /// The object to be created.
    pub(super) fn object(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": self.data,
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": {LABEL: "true"}}})
    }
}

/// A change of one entry, as it is made in the cluster.
pub(super) struct Change {
    pub(super) map: String,
    pub(super) patch: Value,
}

/// All ConfigMaps.
pub(super) struct Policies(Vec<Map>);

impl Policies {
    /// So many policies, and two libraries.
    pub(super) fn new(count: usize) -> Policies {
        let numbers: Vec<usize> = (0..count).collect();
        let mut maps: Vec<Map> = numbers
            .chunks(TOGETHER)
            .enumerate()
            .map(|(index, numbers)| {
                let entries = numbers.iter().flat_map(|number| {
                    let kinds = kinds(*number);
                    let text = text(*number, &kinds);
                    let key = |what: &str| format!("policy.rule_{number}.{what}");
                    [(key("kinds"), kinds), (key("rego"), text)]
                });
                Map {
                    name: format!("bench-policies-{index}"),
                    data: entries.collect(),
                }
            })
            .collect();
        maps.push(Map {
            name: "bench-libraries".into(),
            data: BTreeMap::from([
                ("library.kubernetes.rego".into(), KUBERNETES.into()),
                ("library.labels.rego".into(), LABELS.into()),
            ]),
        });
        Policies(maps)
    }

    pub(super) fn maps(&self) -> &[Map] {
        &self.0
    }

    /// What is in force; all of it must be.
    pub(super) fn force(&self, binding: Binding) -> Result<Force> {
        let mut sources = Sources::new();
        for map in &self.0 {
            let mut data = map.data.clone();
            if binding == Binding::Everything {
                let kinds = data.iter_mut().filter(|(key, _)| key.ends_with(".kinds"));
                kinds.for_each(|(_, kinds)| *kinds = "*".into());
            }
            let written = Written::read(&map.name, None, &data);
            sources.insert(format!("{NAMESPACE}/{}", map.name), written);
        }
        let mut force = Force::default();
        force.update(&sources, &cluster::kinds(), &Choice::default());
        let troubles = force.troubles();
        ensure!(troubles.is_empty(), "these are refused: {troubles:#?}");
        Ok(force)
    }

    /// The policies of each kind, in the order of the kinds.
    pub(super) fn sheets(&self, binding: Binding) -> Result<Vec<Sheet>> {
        let (force, kinds) = (self.force(binding)?, cluster::kinds());
        let sheets = kinds.iter().map(|kind| {
            Sheet::of(&force, kind, &kinds)
                .with_context(|| format!("no policy is about {}", kind.kind))
        });
        sheets.collect()
    }

    /// Changes the first policy, which is about one kind: the first.
    pub(super) fn change_policy(&mut self) -> Result<Change> {
        self.change("policy.rule_0.rego")
    }

    /// Changes a library, which all kinds depend on.
    pub(super) fn change_library(&mut self) -> Result<Change> {
        self.change("library.labels.rego")
    }

    fn change(&mut self, key: &str) -> Result<Change> {
        let mut maps = self.0.iter_mut();
        let map = maps.find(|map| map.data.contains_key(key));
        let map = map.with_context(|| format!("{key} is nowhere"))?;
        let text = map.data.entry(key.into()).or_default();
        text.push_str("\n# It has been looked at again.\n");
        Ok(Change {
            map: map.name.clone(),
            patch: json!({"data": {key: text}}),
        })
    }
}

/// What a policy is about. Those about one kind take the kinds in turn.
fn kinds(number: usize) -> String {
    match number % 10 {
        0..7 => {
            let kinds = cluster::kinds();
            let one = number / 10 * 7 + number % 10;
            kinds[cluster::kind_of(one)].kind.clone()
        }
        7 | 8 => "Workload".into(),
        _ => "*".into(),
    }
}

fn text(number: usize, kinds: &str) -> String {
    let body = body(number, kinds);
    format!(
        "# METADATA\n# title: Rule {number}\n# custom:\n#   id: BENCH-{number}\n#   severity: MEDIUM\npackage bench.rule_{number}\n\nimport data.bench.kubernetes\nimport data.bench.labels\nimport rego.v1\n\ndeny contains {{\"msg\": message}} if {{\n{body}}}\n"
    )
}

/// What finds something in some objects.
fn body(number: usize, kinds: &str) -> String {
    let lines = match kinds {
        "*" => format!(
            "labels.value(\"team\") == \"team-{}\"\nmessage := \"the team has gone\"",
            number % 13
        ),
        "ConfigMap" => format!(
            "some key, value in input.data\nkey == \"setting-{}\"\ncontains(value, \"7\")\nmessage := sprintf(\"%s is %s\", [key, value])",
            number % 40
        ),
        "Service" => format!(
            "some port in input.spec.ports\nport.port == {}\nmessage := sprintf(\"port %d is taken\", [port.port])",
            8000 + number % 10
        ),
        "ServiceAccount" => format!(
            "input.automountServiceAccountToken == true\nlabels.value(\"app\") == \"app-{}\"\nmessage := \"its token is everywhere\"",
            number % 97
        ),
        "Ingress" => format!(
            "some rule in input.spec.rules\nendswith(rule.host, \".zone-{}.example\")\nmessage := sprintf(\"%s is not ours\", [rule.host])",
            number % 10
        ),
        "NetworkPolicy" => format!(
            "some rule in input.spec.ingress\ncount(rule.from) > {}\nmessage := \"many may come in\"",
            number % 5
        ),
        "Role" => format!(
            "some rule in input.rules\nsome verb in rule.verbs\nverb == {:?}\nmessage := sprintf(\"it may %s\", [verb])",
            ["delete", "create", "patch", "bind"][number % 4]
        ),
        // What is left runs containers.
        _ => format!(
            "some container in kubernetes.containers\nsome variable in container.env\nvariable.name == \"SETTING_{}\"\nmessage := sprintf(\"container %s sets %s\", [container.name, variable.name])",
            number % 48
        ),
    };
    let lines = lines.lines().map(|line| format!("\t{line}\n"));
    lines.collect()
}
