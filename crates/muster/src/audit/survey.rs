//! The objects of a cluster: only those of resources that some policy or check is about, in the versions
//! that those want to see, and only from the namespaces where they are asked. A resource that cannot be
//! listed is told and costs no other.

use super::cluster::Cluster;
use super::judge::{Audited, Bench, Job, Known, all, merge};
use super::talk::Talk;
use futures::stream;
use muster_policy::{Policy, Served};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// So many objects wait to be judged at most.
const WAITING: usize = 250;

/// What to list of a resource.
#[derive(Debug, PartialEq, Eq)]
struct Listing<'a> {
    version: &'a str,
    /// Only these namespaces; everything if there are none.
    namespaces: BTreeSet<&'a str>,
}

/// Judges all objects of a cluster, or of one namespace.
pub(super) async fn survey(
    cluster: &Cluster,
    served: &[Served],
    bench: &Arc<Bench>,
    namespace: Option<&str>,
    parallel: usize,
    talk: &Talk,
) -> Vec<Audited> {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let reading = async move {
        for one in served.iter().filter(|one| one.is_audited()) {
            if namespace.is_some() && !one.namespaced {
                continue;
            }
            talk.at(&one.resource);
            let shared = Arc::new(one.clone());
            let policies = bench.policies.iter().map(Known::policy);
            let is_checked = bench.configuration.is_about(one);
            for listing in listings(policies, one, namespace, is_checked) {
                let everywhere = listing.namespaces.is_empty().then_some(None);
                let places = listing.namespaces.iter().map(|name| Some(*name));
                for place in places.chain(everywhere) {
                    let version: Arc<str> = listing.version.into();
                    let sending = cluster.each(one, listing.version, place, async |object| {
                        let job = Job {
                            served: shared.clone(),
                            object,
                            origin: None,
                            version: Some(version.clone()),
                        };
                        sender.send(job).await.is_ok()
                    });
                    if let Err(error) = sending.await {
                        talk.trouble(&crate::told(&error));
                    }
                }
            }
        }
    };
    let jobs = stream::poll_fn(move |context| receiver.poll_recv(context));
    let ((), audited) = futures::join!(reading, all(bench, jobs, parallel, talk));
    merge(audited)
}

/// What to list of a resource so that every policy that is to be asked sees what it is about, and
/// configuration checks, if there are any about it, see everything as the server prefers to show it.
fn listings<'a>(
    policies: impl Iterator<Item = &'a Policy>,
    served: &'a Served,
    namespace: Option<&'a str>,
    is_checked: bool,
) -> Vec<Listing<'a>> {
    let mut wanted: BTreeMap<&str, Option<BTreeSet<&str>>> = BTreeMap::new();
    let checked = served.versions.first().filter(|_| is_checked);
    wanted.extend(checked.map(|version| (version.as_str(), None)));
    for policy in policies.filter(|policy| policy.background) {
        let Some(version) = policy.version_of(served) else {
            continue;
        };
        let places = wanted
            .entry(version)
            .or_insert_with(|| Some(BTreeSet::new()));
        match (policy.namespace.as_deref(), places.as_mut()) {
            (Some(own), Some(places)) => {
                places.insert(own);
            }
            (None, _) => *places = None,
            (Some(_), None) => {}
        }
    }
    let listings = wanted.into_iter().filter_map(|(version, places)| {
        let namespaces = match (namespace, places) {
            (None, places) => places.unwrap_or_default(),
            (Some(only), Some(places)) if !places.contains(only) => return None,
            (Some(only), _) => BTreeSet::from([only]),
        };
        Some(Listing {
            version,
            namespaces,
        })
    });
    listings.collect()
}

/// The labels of the namespaces, if some policy asks for them.
pub(super) async fn namespaces(
    cluster: &Cluster,
    policies: &[Known],
    talk: &Talk,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut policies = policies.iter();
    if policies.all(|known| known.policy().namespace_selector.is_empty()) {
        return BTreeMap::new();
    }
    let served = Served {
        group: String::new(),
        resource: "namespaces".into(),
        kind: "Namespace".into(),
        namespaced: false,
        versions: vec!["v1".into()],
    };
    match cluster.all(&served, "v1", None).await {
        Ok(namespaces) => super::lookup::namespaces(namespaces.iter()),
        Err(error) => {
            talk.trouble(&crate::told(&error));
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(namespace: Option<&str>, versions: &[&str], background: bool) -> Policy {
        let kind = match namespace {
            Some(_) => "AdmissionPolicy",
            None => "ClusterAdmissionPolicy",
        };
        let policy = json!({
            "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
            "metadata": {"name": "p", "namespace": namespace},
            "spec": {"module": "m", "backgroundAudit": background, "rules": [{
                "apiGroups": ["a"], "apiVersions": versions, "resources": ["things"],
                "operations": ["CREATE"]}]},
        });
        Policy::read(&policy).unwrap()
    }

    #[test]
    fn no_more_is_listed_than_policies_are_about() {
        let served = Served {
            group: "a".into(),
            resource: "things".into(),
            kind: "Thing".into(),
            namespaced: true,
            versions: vec!["v2".into(), "v1".into()],
        };
        let wide = || policy(None, &["*"], true);
        let own = |namespace| policy(Some(namespace), &["*"], true);
        let checked = |policies: &[Policy], namespace| {
            let found = listings(policies.iter(), &served, namespace, true);
            let found = found.into_iter();
            found
                .map(|one| (one.version.to_owned(), one.namespaces.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(checked(&[], None), [("v2".to_owned(), 0)]);
        assert_eq!(checked(&[own("x")], None), [("v2".to_owned(), 0)]);
        assert_eq!(checked(&[own("x")], Some("z")), [("v2".to_owned(), 1)]);
        for (policies, namespace, expected) in [
            (vec![], None, &[][..]),
            (vec![wide()], None, &[("v2", &[][..])]),
            (vec![wide(), own("x")], None, &[("v2", &[])]),
            (vec![own("x"), wide()], None, &[("v2", &[])]),
            (vec![own("x"), own("y")], None, &[("v2", &["x", "y"])]),
            (vec![own("x"), own("y")], Some("x"), &[("v2", &["x"])]),
            (vec![own("x")], Some("z"), &[]),
            (vec![wide()], Some("z"), &[("v2", &["z"])]),
            (
                vec![policy(None, &["v1"], true), wide()],
                None,
                &[("v1", &[]), ("v2", &[])],
            ),
            (vec![policy(None, &["v3"], true)], None, &[]),
            // Whoever is not asked needs to see nothing.
            (vec![policy(None, &["*"], false)], None, &[]),
        ] {
            let found = listings(policies.iter(), &served, namespace, false);
            let expected: Vec<Listing> = expected
                .iter()
                .map(|(version, namespaces)| Listing {
                    version,
                    namespaces: namespaces.iter().copied().collect(),
                })
                .collect();
            assert_eq!(found, expected, "{namespace:?} {policies:#?}");
        }
    }
}
