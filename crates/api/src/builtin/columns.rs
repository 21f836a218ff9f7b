//! The columns of the other kinds: nodes, services, access, events and what is stored.

use super::cell::{
    age_column, condition, entries, integer_column, items, labels, number, quantity,
    selector_or_none, since, text, text_column, text_or,
};
use muster_kind::Column;
use serde_json::Value;
use std::collections::BTreeSet;

fn count(object: &Value, pointer: &str) -> usize {
    entries(object, pointer).map_or(0, |map| map.len())
}

pub(super) fn config_map() -> Vec<Column> {
    vec![
        text_column("Data", |o| {
            (count(o, "/data") + count(o, "/binaryData")).into()
        })
        .describe("How many keys there are."),
        age_column(),
    ]
}

pub(super) fn secret() -> Vec<Column> {
    vec![
        text_column("Type", |o| text_or(o, "/type", "Opaque")).describe("What the data is for."),
        text_column("Data", |o| count(o, "/data").into()).describe("How many keys there are."),
        age_column(),
    ]
}

pub(super) fn namespace() -> Vec<Column> {
    vec![
        text_column("Status", |o| text(o, "/status/phase").into())
            .describe("Whether it is active or being deleted."),
        age_column(),
    ]
}

pub(super) fn lease() -> Vec<Column> {
    vec![
        text_column("Holder", |o| text(o, "/spec/holderIdentity").into())
            .describe("Who holds the lease."),
        age_column(),
    ]
}

pub(super) fn node() -> Vec<Column> {
    vec![
        text_column("Status", node_status).describe("Whether it is ready for pods."),
        text_column("Roles", node_roles).describe("What it is used for."),
        age_column(),
        text_column("Version", |o| {
            text(o, "/status/nodeInfo/kubeletVersion").into()
        })
        .describe("The version of its kubelet."),
        text_column("Internal-IP", |o| address(o, "InternalIP"))
            .wide()
            .describe("Its address."),
        text_column("External-IP", |o| address(o, "ExternalIP"))
            .wide()
            .describe("Its address from outside."),
        text_column("OS-Image", |o| {
            text_or(o, "/status/nodeInfo/osImage", "<unknown>")
        })
        .wide()
        .describe("Its operating system."),
        text_column("Kernel-Version", |o| {
            let kernel = text_or(o, "/status/nodeInfo/kernelVersion", "<unknown>");
            match text(o, "/status/nodeInfo/architecture") {
                "" => kernel,
                architecture => {
                    format!("{} ({architecture})", kernel.as_str().unwrap_or_default()).into()
                }
            }
        })
        .wide()
        .describe("Its kernel."),
        text_column("Container-Runtime", |o| {
            text_or(o, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")
        })
        .wide()
        .describe("What runs its containers."),
    ]
}

fn node_status(node: &Value) -> Value {
    let known = items(node, "/status/conditions")
        .iter()
        .any(|c| text(c, "/type") == "Ready");
    let ready = match (known, condition(node, "Ready")) {
        (false, _) => "Unknown",
        (true, true) => "Ready",
        (true, false) => "NotReady",
    };
    let disabled = node
        .pointer("/spec/unschedulable")
        .is_some_and(|v| *v == true);
    if disabled {
        format!("{ready},SchedulingDisabled").into()
    } else {
        ready.into()
    }
}

fn node_roles(node: &Value) -> Value {
    let roles: BTreeSet<&str> = entries(node, "/metadata/labels")
        .into_iter()
        .flatten()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None => value.as_str().filter(|_| key == "kubernetes.io/role"),
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    if roles.is_empty() {
        "<none>".into()
    } else {
        roles.into()
    }
}

fn address(node: &Value, of: &str) -> Value {
    items(node, "/status/addresses")
        .iter()
        .find(|address| text(address, "/type") == of)
        .map_or_else(
            || "<none>".into(),
            |address| text(address, "/address").into(),
        )
}

pub(super) fn event() -> Vec<Column> {
    let mut name = text_column("Name", |o| text(o, "/metadata/name").into()).wide();
    name.format = "name".into();
    vec![
        text_column("Last Seen", |o| last_seen(o).into())
            .describe("How long ago it last happened."),
        text_column("Type", |o| text(o, "/type").into()).describe("Normal or Warning."),
        text_column("Reason", |o| text(o, "/reason").into()).describe("Why, in one word."),
        text_column("Object", |o| {
            let kind = text(o, "/involvedObject/kind").to_lowercase();
            match text(o, "/involvedObject/name") {
                "" => kind.into(),
                name => format!("{kind}/{name}").into(),
            }
        })
        .describe("What it is about."),
        text_column("Subobject", |o| text(o, "/involvedObject/fieldPath").into())
            .wide()
            .describe("Which part of it."),
        text_column("Source", event_source)
            .wide()
            .describe("Who says so."),
        text_column("Message", |o| text(o, "/message").trim().into()).describe("What happened."),
        text_column("First Seen", |o| first_seen(o).into())
            .wide()
            .describe("How long ago it first happened."),
        text_column("Count", |o| {
            let count = match o.get("series").filter(|series| series.is_object()) {
                Some(series) => number(series, "/count"),
                None => number(o, "/count").max(1),
            };
            count.into()
        })
        .wide()
        .describe("How often it happened."),
        name.describe("The event's name."),
    ]
}

fn first_seen(event: &Value) -> String {
    since(
        event
            .get("firstTimestamp")
            .filter(|t| t.is_string())
            .or_else(|| event.get("eventTime")),
    )
}

fn last_seen(event: &Value) -> String {
    if let Some(series) = event.get("series").filter(|series| series.is_object()) {
        return since(series.get("lastObservedTime"));
    }
    match event.get("lastTimestamp").filter(|time| time.is_string()) {
        Some(time) => since(Some(time)),
        None => first_seen(event),
    }
}

fn event_source(event: &Value) -> Value {
    let first = |one: &str, other: &str| match text(event, one) {
        "" => text(event, other).to_owned(),
        text => text.to_owned(),
    };
    let component = first("/source/component", "/reportingComponent");
    match first("/source/host", "/reportingInstance").as_str() {
        "" => component.into(),
        host => format!("{component}, {host}").into(),
    }
}

pub(super) fn service() -> Vec<Column> {
    vec![
        text_column("Type", |o| text_or(o, "/spec/type", "ClusterIP"))
            .describe("How the service is reached."),
        text_column("Cluster-IP", |o| {
            match o.pointer("/spec/clusterIPs/0").and_then(Value::as_str) {
                Some(address) => address.into(),
                None => text_or(o, "/spec/clusterIP", "<none>"),
            }
        })
        .describe("Its address in the cluster."),
        text_column("External-IP", external_address).describe("Its address from outside."),
        text_column("Port(s)", ports).describe("Its ports."),
        age_column(),
        text_column("Selector", |o| labels(entries(o, "/spec/selector")))
            .wide()
            .describe("Which pods answer."),
    ]
}

fn external_address(service: &Value) -> Value {
    let mut addresses = Vec::new();
    let of = text_or(service, "/spec/type", "ClusterIP");
    let of = of.as_str().unwrap_or_default();
    if of == "ExternalName" {
        return text(service, "/spec/externalName").into();
    }
    if of == "LoadBalancer" {
        addresses.extend(balancers(service));
    }
    addresses.extend(
        items(service, "/spec/externalIPs")
            .iter()
            .filter_map(Value::as_str),
    );
    match (addresses.is_empty(), of) {
        (true, "LoadBalancer") => "<pending>".into(),
        (true, _) => "<none>".into(),
        (false, _) => addresses.join(",").into(),
    }
}

/// The addresses of load balancers, sorted, each once.
fn balancers(object: &Value) -> BTreeSet<&str> {
    items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| match text(ingress, "/ip") {
            "" => text(ingress, "/hostname"),
            address => address,
        })
        .filter(|address| !address.is_empty())
        .collect()
}

fn ports(service: &Value) -> Value {
    let ports: Vec<String> = items(service, "/spec/ports")
        .iter()
        .map(|port| {
            let protocol = text_or(port, "/protocol", "TCP");
            let protocol = protocol.as_str().unwrap_or_default();
            match number(port, "/nodePort") {
                0 => format!("{}/{protocol}", number(port, "/port")),
                node => format!("{}:{node}/{protocol}", number(port, "/port")),
            }
        })
        .collect();
    if ports.is_empty() {
        "<none>".into()
    } else {
        ports.join(",").into()
    }
}

pub(super) fn ingress() -> Vec<Column> {
    vec![
        text_column("Class", |o| text_or(o, "/spec/ingressClassName", "<none>"))
            .describe("Which controller serves it."),
        text_column("Hosts", hosts).describe("The hosts it answers for."),
        text_column("Address", |o| {
            balancers(o)
                .into_iter()
                .collect::<Vec<_>>()
                .join(",")
                .into()
        })
        .describe("Where it is reached."),
        text_column("Ports", |o| {
            if items(o, "/spec/tls").is_empty() {
                "80".into()
            } else {
                "80, 443".into()
            }
        })
        .describe("Its ports."),
        age_column(),
    ]
}

fn hosts(ingress: &Value) -> Value {
    let rules = items(ingress, "/spec/rules");
    let mut hosts = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= hosts.len() == 3;
        if !more && !text(rule, "/host").is_empty() {
            hosts.push(text(rule, "/host"));
        }
    }
    match (hosts.is_empty(), more) {
        (true, _) => "*".into(),
        (_, true) => format!("{} + {} more...", hosts.join(","), rules.len() - 3).into(),
        _ => hosts.join(",").into(),
    }
}

pub(super) fn network_policy() -> Vec<Column> {
    vec![
        text_column("Pod-Selector", |o| selector_or_none(o, "/spec/podSelector"))
            .describe("Which pods it applies to."),
        age_column(),
    ]
}

pub(super) fn binding() -> Vec<Column> {
    vec![
        text_column("Role", |o| {
            format!("{}/{}", text(o, "/roleRef/kind"), text(o, "/roleRef/name")).into()
        })
        .describe("The role it gives."),
        age_column(),
        text_column("Users", |o| subjects(o, "User"))
            .wide()
            .describe("The users it is given to."),
        text_column("Groups", |o| subjects(o, "Group"))
            .wide()
            .describe("The groups it is given to."),
        text_column("ServiceAccounts", |o| subjects(o, "ServiceAccount"))
            .wide()
            .describe("The service accounts it is given to."),
    ]
}

fn subjects(binding: &Value, of: &str) -> Value {
    let names: Vec<String> = items(binding, "/subjects")
        .iter()
        .filter(|subject| text(subject, "/kind") == of)
        .map(|subject| match of {
            "ServiceAccount" => {
                format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
            }
            _ => text(subject, "/name").to_owned(),
        })
        .collect();
    names.join(", ").into()
}

pub(super) fn pod_disruption_budget() -> Vec<Column> {
    fn amount(value: Option<&Value>) -> Value {
        match value {
            Some(Value::String(text)) => text.as_str().into(),
            Some(Value::Number(number)) => number.to_string().into(),
            _ => "N/A".into(),
        }
    }
    vec![
        text_column("Min Available", |o| amount(o.pointer("/spec/minAvailable")))
            .describe("Pods that must stay."),
        text_column("Max Unavailable", |o| {
            amount(o.pointer("/spec/maxUnavailable"))
        })
        .describe("Pods that may go."),
        integer_column("Allowed Disruptions", |o| {
            number(o, "/status/disruptionsAllowed").into()
        })
        .describe("Pods that may go now."),
        age_column(),
    ]
}

pub(super) fn resource_quota() -> Vec<Column> {
    fn amounts(quota: &Value, limits: bool) -> Value {
        let mut names: Vec<&String> = entries(quota, "/status/hard")
            .into_iter()
            .flat_map(|map| map.keys())
            .collect();
        names.sort();
        let lines: Vec<String> = names
            .into_iter()
            .filter(|name| name.starts_with("limits.") == limits)
            .map(|name| {
                let amount =
                    |of: &str| quantity(quota.pointer(&format!("/status/{of}")), name, "0");
                format!("{name}: {}/{}", amount("used"), amount("hard"))
            })
            .collect();
        lines.join(", ").into()
    }
    vec![
        text_column("Request", |o| amounts(o, false)).describe("Used and allowed requests."),
        text_column("Limit", |o| amounts(o, true)).describe("Used and allowed limits."),
        age_column(),
    ]
}

#[cfg(test)]
mod tests;
