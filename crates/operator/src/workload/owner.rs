//! To whom a pod belongs: owners are followed upwards, through any kind, until one stands for itself.
//! A static pod belongs to its node, which is no workload: it stands for itself. What was learned is
//! kept for a while, since an object hardly ever changes its owner; where many are unknown they are
//! asked for by one list.

use super::pod::Owner;
use crate::object::is_absent;
use kube::api::{ApiResource, GroupVersionKind, ListParams, ObjectMeta};
use kube::core::DynamicObject;
use kube::discovery::{self, Scope};
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an owner is known.
const FRESH: Duration = Duration::from_secs(600);
/// How long it is known that one cannot be looked at.
const BRIEF: Duration = Duration::from_secs(60);
/// How many steps are taken upwards.
const HIGHEST: usize = 16;
/// From so many unknown objects of a kind on, they are listed.
const MANY: usize = 3;
/// How many owners are known at most, and how many kinds of them.
const MOST: usize = 200_000;
const MOST_KINDS: usize = 1_000;

/// What is known of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// It is there, and belongs to another or to nobody.
    Here(Option<Owner>),
    /// It is not there, or is another of that name.
    Gone,
    /// It cannot be looked at: nobody serves that kind, or we may not.
    Hidden,
}

/// Where a kind is served, if we can tell.
type Served = Option<(ApiResource, Scope)>;

/// An owner as the objects of a namespace name it. What one namespace claims of an owner is true
/// of no other: anybody may write another's UID into a reference.
type Key = (String, Owner);

/// The owners of a cluster.
#[derive(Default)]
pub(crate) struct Owners {
    known: Mutex<HashMap<Key, (Known, Instant)>>,
    kinds: Mutex<HashMap<(String, String), (Served, Instant)>>,
}

impl Owners {
    /// The workload of each of these owners of pods; none if the pods are about to go with an owner
    /// that has gone.
    pub(crate) async fn workloads(
        &self,
        client: &Client,
        namespace: &str,
        owners: BTreeSet<Owner>,
    ) -> Result<HashMap<Owner, Option<Owner>>, kube::Error> {
        let mut found = HashMap::new();
        let mut doubted = BTreeSet::new();
        // Each with how far it has been followed.
        let mut rising: Vec<(Owner, Owner)> = owners.into_iter().map(|o| (o.clone(), o)).collect();
        for _ in 0..HIGHEST {
            let unknown: BTreeSet<Owner> = {
                let known = lock(&self.known);
                let is_fresh = |owner: &Owner| {
                    known
                        .get(&key(namespace, owner))
                        .is_some_and(|(known, at)| at.elapsed() < known.lasts())
                };
                let unknown = rising.iter().filter(|(_, at)| !is_fresh(at));
                unknown.map(|(_, at)| at.clone()).collect()
            };
            self.look(client, namespace, unknown).await?;
            let mut known = lock(&self.known);
            let mut still = Vec::new();
            for (pod_owner, at) in rising {
                match known.get(&key(namespace, &at)).map(|(known, _)| known) {
                    Some(Known::Here(Some(above))) => still.push((pod_owner, above.clone())),
                    // Whoever said that it belongs to that one may belong to nobody by now.
                    Some(Known::Gone) if pod_owner != at && doubted.insert(pod_owner.clone()) => {
                        let claim = Known::Here(Some(at));
                        known
                            .retain(|(place, _), (known, _)| place != namespace || *known != claim);
                        still.push((pod_owner.clone(), pod_owner));
                    }
                    Some(Known::Gone) => drop(found.insert(pod_owner, None)),
                    Some(Known::Here(None) | Known::Hidden) | None => {
                        found.insert(pod_owner, Some(at));
                    }
                }
            }
            rising = still;
            if rising.is_empty() {
                break;
            }
        }
        // Whoever runs in circles stands for itself.
        found.extend(
            rising
                .into_iter()
                .map(|(owner, _)| (owner.clone(), Some(owner))),
        );
        Ok(found)
    }

    /// Asks anew for an owner the next time.
    pub(crate) fn forget(&self, namespace: &str, owner: &Owner) {
        lock(&self.known).remove(&key(namespace, owner));
    }

    /// Which of these workloads are still there, asked anew. One that cannot be looked at counts as
    /// there if `hidden` does.
    pub(crate) async fn remaining(
        &self,
        client: &Client,
        namespace: &str,
        workloads: BTreeSet<Owner>,
        hidden: bool,
    ) -> Result<BTreeSet<Owner>, kube::Error> {
        self.look(client, namespace, workloads.clone()).await?;
        let known = lock(&self.known);
        let is_there = |workload: &Owner| match known.get(&key(namespace, workload)) {
            Some((Known::Here(_), _)) => true,
            Some((Known::Hidden, _)) => hidden,
            Some((Known::Gone, _)) | None => false,
        };
        Ok(workloads.into_iter().filter(is_there).collect())
    }

    /// Asks for objects of a namespace.
    async fn look(
        &self,
        client: &Client,
        namespace: &str,
        unknown: BTreeSet<Owner>,
    ) -> Result<(), kube::Error> {
        let mut by_kind: BTreeMap<(String, String), Vec<Owner>> = BTreeMap::new();
        for owner in unknown {
            let kind = (owner.api_version.clone(), owner.kind.clone());
            by_kind.entry(kind).or_default().push(owner);
        }
        for (kind, owners) in by_kind {
            let answers = match self.served(client, &kind).await? {
                Some((resource, Scope::Namespaced)) => {
                    let api = Api::namespaced_with(client.clone(), namespace, &resource);
                    ask(&api, &owners).await?
                }
                Some((resource, Scope::Cluster)) => {
                    let api = Api::all_with(client.clone(), &resource);
                    ask_each(&api, &owners).await?
                }
                None => owners
                    .iter()
                    .map(|one| (one.clone(), Known::Hidden))
                    .collect(),
            };
            let now = Instant::now();
            let mut known = lock(&self.known);
            if known.len() + answers.len() > MOST {
                known.retain(|_, (known, at)| at.elapsed() < known.lasts());
            }
            if known.len() + answers.len() > MOST {
                known.clear();
            }
            let answers = answers.into_iter();
            known.extend(answers.map(|(owner, one)| (key(namespace, &owner), (one, now))));
        }
        Ok(())
    }

    /// Where a kind is served; kinds that nobody knows are asked for again after a while.
    async fn served(
        &self,
        client: &Client,
        kind: &(String, String),
    ) -> Result<Served, kube::Error> {
        let (api_version, name) = kind;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, name);
        if is_common(group, version, name) {
            return Ok(Some((ApiResource::from_gvk(&gvk), Scope::Namespaced)));
        }
        if let Some((served, at)) = lock(&self.kinds).get(kind)
            && at.elapsed() < if served.is_some() { FRESH } else { BRIEF }
        {
            return Ok(served.clone());
        }
        let served = match discovery::pinned_kind(client, &gvk).await {
            Ok((resource, capabilities)) => Some((resource, capabilities.scope)),
            // Whoever else serves a group may be away for long; that must not hold up the others.
            Err(error) => {
                tracing::debug!(%error, ?kind, "a kind that owns pods");
                None
            }
        };
        let mut kinds = lock(&self.kinds);
        if kinds.len() >= MOST_KINDS {
            kinds.clear();
        }
        kinds.insert(kind.clone(), (served.clone(), Instant::now()));
        Ok(served)
    }
}

impl Known {
    /// How long this is believed.
    fn lasts(&self) -> Duration {
        match self {
            Known::Here(_) | Known::Gone => FRESH,
            Known::Hidden => BRIEF,
        }
    }
}

fn key(namespace: &str, owner: &Owner) -> Key {
    (namespace.to_owned(), owner.clone())
}

/// Kinds whose place everybody knows. Of another version nobody knows whether it is served.
fn is_common(group: &str, version: &str, kind: &str) -> bool {
    let is_known = matches!(
        (group, kind),
        (
            "apps",
            "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet"
        ) | ("batch", "Job" | "CronJob")
            | ("", "ReplicationController" | "Pod")
    );
    is_known && version == "v1"
}

async fn ask(
    api: &Api<DynamicObject>,
    owners: &[Owner],
) -> Result<Vec<(Owner, Known)>, kube::Error> {
    let first = match owners.first() {
        Some(first) if owners.len() >= MANY => first,
        _ => return ask_each(api, owners).await,
    };
    let mut parameters = ListParams::default().limit(500);
    let mut here: HashMap<String, Option<Owner>> = HashMap::new();
    loop {
        let page = match api.list_metadata(&parameters).await {
            Ok(page) => page,
            // Some may be got one by one though not listed.
            Err(error) if !is_away(first, &error) => return ask_each(api, owners).await,
            Err(error) => return Err(error),
        };
        here.extend(page.items.into_iter().filter_map(|item| {
            let above = Owner::of(&item.metadata);
            item.metadata.uid.map(|uid| (uid, above))
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    let answer = |owner: &Owner| match here.get(&owner.uid) {
        Some(above) => (owner.clone(), Known::Here(above.clone())),
        None => (owner.clone(), Known::Gone),
    };
    Ok(owners.iter().map(answer).collect())
}

async fn ask_each(
    api: &Api<DynamicObject>,
    owners: &[Owner],
) -> Result<Vec<(Owner, Known)>, kube::Error> {
    let mut answers = Vec::new();
    for owner in owners {
        let known = match api.get_metadata(&owner.name).await {
            Ok(object) => judge(owner, &object.metadata),
            Err(error) if is_absent(&error) => Known::Gone,
            Err(error) if is_away(owner, &error) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, ?owner, "an owner cannot be looked at");
                Known::Hidden
            }
        };
        answers.push((owner.clone(), known));
    }
    Ok(answers)
}

fn judge(owner: &Owner, metadata: &ObjectMeta) -> Known {
    match metadata.uid.as_deref() == Some(&owner.uid) {
        true => Known::Here(Owner::of(metadata)),
        false => Known::Gone,
    }
}

/// Whether the server cannot be asked now, which says nothing about the object. What somebody else
/// serves may be away for long, and counts as hidden.
fn is_away(owner: &Owner, error: &kube::Error) -> bool {
    let is_ours = matches!(owner.group(), "" | "apps" | "batch");
    match error {
        kube::Error::Api(status) => is_ours && (status.code == 429 || status.code >= 500),
        // A name that is none.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => false,
        _ => is_ours,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response, StatusCode};
    use http_body_util::Full;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Arc;

    fn owner(api_version: &str, kind: &str, name: &str) -> Owner {
        Owner {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: format!("uid-{name}"),
        }
    }

    /// A server that has some objects, by their paths; counts what it is asked.
    fn client(objects: HashMap<String, (u16, Value)>, asked: Arc<Mutex<Vec<String>>>) -> Client {
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let path = request.uri().path().to_owned();
            let (code, body) = objects.get(&path).cloned().unwrap_or_else(|| {
                (404, json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}))
            });
            lock(&asked).push(path);
            async move {
                let mut response = Response::new(Full::from(body.to_string()));
                *response.status_mut() = StatusCode::from_u16(code).expect("a status");
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }

    fn metadata(name: &str, above: Option<&Owner>) -> Value {
        let above: Vec<Value> = above
            .iter()
            .map(|one| {
                json!({
                    "apiVersion": one.api_version, "kind": one.kind, "name": one.name,
                    "uid": one.uid, "controller": true,
                })
            })
            .collect();
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "ownerReferences": above},
        })
    }

    #[tokio::test]
    async fn owners_are_followed_to_the_top_through_any_kind() {
        let rollout = owner("argoproj.io/v1alpha1", "Rollout", "web");
        let set = owner("apps/v1", "ReplicaSet", "web-1");
        let (one, other) = (
            owner("apps/v1", "ReplicaSet", "x"),
            owner("apps/v1", "ReplicaSet", "y"),
        );
        let strange = owner("nobody.example/v1", "Thing", "z");
        let gone = owner("batch/v1", "Job", "gone");
        let old = owner("apps/v9", "ReplicaSet", "old");
        let sets = "/apis/apps/v1/namespaces/n/replicasets";
        let kinds = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "argoproj.io/v1alpha1",
            "resources": [{
                "name": "rollouts", "singularName": "rollout", "namespaced": true, "kind": "Rollout",
                "verbs": ["get", "list"],
            }],
        });
        let list = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
            "items": [
                metadata("web-1", Some(&rollout)),
                // Each owns the other.
                metadata("x", Some(&other)), metadata("y", Some(&one)),
            ],
        });
        let refused =
            json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"});
        let objects = HashMap::from([
            (sets.to_owned(), (200, list)),
            ("/apis/argoproj.io/v1alpha1".to_owned(), (200, kinds)),
            (
                "/apis/argoproj.io/v1alpha1/namespaces/n/rollouts/web".to_owned(),
                (403, refused),
            ),
        ]);
        let asked = Arc::default();
        let client = client(objects, Arc::clone(&asked));
        let owners = Owners::default();
        let all = [&set, &one, &other, &strange, &gone, &old].map(Clone::clone);
        let found = owners
            .workloads(&client, "n", BTreeSet::from(all))
            .await
            .unwrap();
        // One that we may not look at counts as the top, and so does one that nobody serves.
        assert_eq!(found[&set], Some(rollout.clone()));
        assert_eq!(found[&strange], Some(strange.clone()));
        assert_eq!(found[&old], Some(old.clone()));
        assert_eq!(found[&gone], None);
        // Whoever runs in circles stands for itself.
        assert_eq!(found[&one], Some(one.clone()));
        let requests = lock(&asked).len();
        let again = owners.workloads(&client, "n", BTreeSet::from([set.clone()]));
        assert_eq!(again.await.unwrap()[&set], Some(rollout.clone()));
        assert_eq!(
            lock(&asked).len(),
            requests,
            "what is known is not asked again"
        );

        // Another namespace says what it likes, and is believed in that namespace only.
        let claim = Owner {
            name: "made-up".into(),
            ..set.clone()
        };
        let claimed = owners.workloads(&client, "m", BTreeSet::from([claim.clone()]));
        assert_eq!(claimed.await.unwrap()[&claim], None);
        let again = owners.workloads(&client, "n", BTreeSet::from([set.clone()]));
        assert_eq!(again.await.unwrap()[&set], Some(rollout.clone()));

        for (hidden, count) in [(true, 1), (false, 0)] {
            let asked = BTreeSet::from([rollout.clone(), gone.clone()]);
            let remaining = owners.remaining(&client, "n", asked, hidden);
            assert_eq!(remaining.await.unwrap().len(), count);
        }
    }

    #[tokio::test]
    async fn a_server_that_is_away_says_nothing_about_owners() {
        let failing = json!({"kind": "Status", "status": "Failure", "code": 503});
        let job = "/apis/batch/v1/namespaces/n/jobs/j".to_owned();
        let other = "/apis/other.example/v1".to_owned();
        let objects = HashMap::from([(job, (503, failing.clone())), (other, (503, failing))]);
        let client = client(objects, Arc::default());
        let owners = Owners::default();
        let job = BTreeSet::from([owner("batch/v1", "Job", "j")]);
        assert!(owners.workloads(&client, "n", job).await.is_err());
        // What another server serves holds nobody up.
        let other = owner("other.example/v1", "Thing", "t");
        let found = owners.workloads(&client, "n", BTreeSet::from([other.clone()]));
        assert_eq!(found.await.unwrap()[&other], Some(other.clone()));
    }

    #[tokio::test]
    async fn who_was_orphaned_stands_for_itself() {
        let deployment = owner("apps/v1", "Deployment", "web");
        let set = owner("apps/v1", "ReplicaSet", "web-1");
        let path = |plural: &str, name: &str| format!("/apis/apps/v1/namespaces/n/{plural}/{name}");
        let both = HashMap::from([
            (
                path("replicasets", "web-1"),
                (200, metadata("web-1", Some(&deployment))),
            ),
            (path("deployments", "web"), (200, metadata("web", None))),
        ]);
        let alone = HashMap::from([(path("replicasets", "web-1"), (200, metadata("web-1", None)))]);
        let owners = Owners::default();
        let asked = || BTreeSet::from([set.clone()]);
        let before = client(both, Arc::default());
        let found = owners.workloads(&before, "n", asked()).await.unwrap();
        assert_eq!(found[&set], Some(deployment.clone()));
        owners.forget("n", &deployment);
        let after = client(alone, Arc::default());
        let found = owners.workloads(&after, "n", asked()).await.unwrap();
        assert_eq!(found[&set], Some(set.clone()));
    }
}
