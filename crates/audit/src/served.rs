//! What a cluster serves, in all versions. Where a part of it cannot be told at the moment (an
//! aggregated server is away), what was known of that part stays, so that nothing is taken for gone.

use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList};
use muster_policy::Served;
use std::collections::BTreeSet;

/// What a look at a cluster came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The resources that can be listed and watched.
    pub served: Vec<Served>,
    /// The groups about which the server knows nothing current.
    pub doubtful: BTreeSet<String>,
}

/// Asks a cluster what it serves.
pub async fn discover(client: &Client) -> Result<Discovered, kube::Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    let groups = client.list_api_groups_aggregated().await?;
    Ok(read(core).join(read(groups)))
}

impl Discovered {
    fn join(mut self, other: Discovered) -> Discovered {
        self.served.extend(other.served);
        self.doubtful.extend(other.doubtful);
        self
    }

    /// With what was known before about the groups that are in doubt.
    pub fn or_as_before(mut self, before: &[Served]) -> Vec<Served> {
        for known in before
            .iter()
            .filter(|one| self.doubtful.contains(&one.group))
        {
            let mut now = self.served.iter();
            if !now.any(|one| one.group == known.group && one.resource == known.resource) {
                self.served.push(known.clone());
            }
        }
        self.served
    }
}

fn read(list: APIGroupDiscoveryList) -> Discovered {
    let mut discovered = Discovered::default();
    for group in list.items {
        read_group(&group, &mut discovered);
    }
    discovered
}

fn read_group(group: &APIGroupDiscovery, into: &mut Discovered) {
    let name = group.metadata.as_ref().and_then(|meta| meta.name.clone());
    let name = name.unwrap_or_default();
    // Versions come in the order of preference.
    for version in &group.versions {
        if version.freshness.as_deref() == Some("Stale") {
            into.doubtful.insert(name.clone());
        }
        let Some(written) = &version.version else {
            continue;
        };
        for resource in &version.resources {
            let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
            let kind = resource
                .response_kind
                .as_ref()
                .and_then(|kind| kind.kind.clone());
            let (Some(plural), Some(kind)) = (&resource.resource, kind) else {
                continue;
            };
            if !can("list") || !can("watch") {
                continue;
            }
            let mut known = into.served.iter_mut();
            match known.find(|one| one.group == name && one.resource == *plural) {
                Some(known) => known.versions.push(written.clone()),
                None => into.served.push(Served {
                    group: name.clone(),
                    resource: plural.clone(),
                    kind,
                    namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    versions: vec![written.clone()],
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(freshness: &str) -> APIGroupDiscoveryList {
        let resource = |resource: &str, kind: &str, scope: &str, verbs: &[&str]| {
            json!({"resource": resource, "scope": scope, "verbs": verbs,
                "responseKind": {"group": "", "version": "", "kind": kind}})
        };
        let all = ["create", "get", "list", "watch"];
        let list = json!({"items": [
            {"metadata": {"name": "autoscaling"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": [
                    resource("autoscalers", "Autoscaler", "Namespaced", &all),
                    resource("reviews", "Review", "Cluster", &["create"]),
                ]},
                {"version": "v1", "freshness": "Current", "resources": [
                    resource("autoscalers", "Autoscaler", "Namespaced", &all),
                ]},
            ]},
            {"metadata": {"name": "metrics"}, "versions": [
                {"version": "v1", "freshness": freshness, "resources": []},
            ]},
        ]});
        serde_json::from_value(list).unwrap()
    }

    fn served(group: &str, resource: &str, versions: &[&str]) -> Served {
        Served {
            group: group.into(),
            resource: resource.into(),
            kind: "Autoscaler".into(),
            namespaced: true,
            versions: versions.iter().map(|one| (*one).into()).collect(),
        }
    }

    #[test]
    fn a_resource_is_known_once_with_all_its_versions() {
        let discovered = read(list("Current"));
        assert_eq!(
            discovered.served,
            [served("autoscaling", "autoscalers", &["v2", "v1"])]
        );
        assert!(discovered.doubtful.is_empty());
    }

    #[test]
    fn what_cannot_be_told_is_taken_to_be_as_before() {
        let before = [
            served("metrics", "nodes", &["v1"]),
            served("gone", "things", &["v1"]),
        ];
        let now = |freshness| read(list(freshness)).or_as_before(&before);
        let known = |served: &[Served], group: &str| served.iter().any(|one| one.group == group);
        assert!(known(&now("Stale"), "metrics"));
        assert!(!known(&now("Current"), "metrics"));
        assert!(!known(&now("Stale"), "gone"));
    }
}
