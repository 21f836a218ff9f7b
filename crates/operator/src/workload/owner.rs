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
/// How many steps are taken upwards.
const HIGHEST: usize = 16;
/// From so many unknown objects of a kind on, they are listed.
const MANY: usize = 3;
/// How many owners are known at most.
const MOST: usize = 200_000;

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

/// The owners of a cluster.
#[derive(Default)]
pub(crate) struct Owners {
    known: Mutex<HashMap<String, (Known, Instant)>>,
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
        // Each with how far it has been followed.
        let mut rising: Vec<(Owner, Owner)> = owners.into_iter().map(|o| (o.clone(), o)).collect();
        for _ in 0..HIGHEST {
            let unknown: BTreeSet<Owner> = {
                let known = lock(&self.known);
                let is_fresh = |owner: &Owner| {
                    known
                        .get(&owner.uid)
                        .is_some_and(|(_, at)| at.elapsed() < FRESH)
                };
                let unknown = rising.iter().filter(|(_, at)| !is_fresh(at));
                unknown.map(|(_, at)| at.clone()).collect()
            };
            self.look(client, namespace, unknown).await?;
            let known = lock(&self.known);
            let mut still = Vec::new();
            for (pod_owner, at) in rising {
                match known.get(&at.uid).map(|(known, _)| known) {
                    Some(Known::Here(Some(above))) => still.push((pod_owner, above.clone())),
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

    /// Which of these workloads are still there, asked anew.
    pub(crate) async fn remaining(
        &self,
        client: &Client,
        namespace: &str,
        workloads: BTreeSet<Owner>,
    ) -> Result<BTreeSet<Owner>, kube::Error> {
        self.look(client, namespace, workloads.clone()).await?;
        let known = lock(&self.known);
        let gone =
            |workload: &Owner| matches!(known.get(&workload.uid), Some((Known::Gone, _)) | None);
        Ok(workloads.into_iter().filter(|one| !gone(one)).collect())
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
                    .map(|one| (one.uid.clone(), Known::Hidden))
                    .collect(),
            };
            let now = Instant::now();
            let mut known = lock(&self.known);
            if known.len() + answers.len() > MOST {
                known.retain(|_, (_, at)| at.elapsed() < FRESH);
            }
            if known.len() + answers.len() > MOST {
                known.clear();
            }
            known.extend(answers.into_iter().map(|(uid, one)| (uid, (one, now))));
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
        if is_common(group, name) {
            return Ok(Some((ApiResource::from_gvk(&gvk), Scope::Namespaced)));
        }
        if let Some((served, at)) = lock(&self.kinds).get(kind)
            && at.elapsed() < FRESH
        {
            return Ok(served.clone());
        }
        let served = match discovery::pinned_kind(client, &gvk).await {
            Ok((resource, capabilities)) => Some((resource, capabilities.scope)),
            Err(error) if is_away(&error) => return Err(error),
            Err(_) => None,
        };
        lock(&self.kinds).insert(kind.clone(), (served.clone(), Instant::now()));
        Ok(served)
    }
}

/// Kinds whose place everybody knows.
fn is_common(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        (
            "apps",
            "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet"
        ) | ("batch", "Job" | "CronJob")
            | ("", "ReplicationController" | "Pod")
    )
}

async fn ask(
    api: &Api<DynamicObject>,
    owners: &[Owner],
) -> Result<Vec<(String, Known)>, kube::Error> {
    if owners.len() < MANY {
        return ask_each(api, owners).await;
    }
    let mut parameters = ListParams::default().limit(500);
    let mut here: HashMap<String, Option<Owner>> = HashMap::new();
    loop {
        let page = match api.list_metadata(&parameters).await {
            Ok(page) => page,
            // Some may be got one by one though not listed.
            Err(error) if !is_away(&error) => return ask_each(api, owners).await,
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
        Some(above) => (owner.uid.clone(), Known::Here(above.clone())),
        None => (owner.uid.clone(), Known::Gone),
    };
    Ok(owners.iter().map(answer).collect())
}

async fn ask_each(
    api: &Api<DynamicObject>,
    owners: &[Owner],
) -> Result<Vec<(String, Known)>, kube::Error> {
    let mut answers = Vec::new();
    for owner in owners {
        let known = match api.get_metadata(&owner.name).await {
            Ok(object) => judge(owner, &object.metadata),
            Err(error) if is_absent(&error) => Known::Gone,
            Err(error) if is_away(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, ?owner, "an owner cannot be looked at");
                Known::Hidden
            }
        };
        answers.push((owner.uid.clone(), known));
    }
    Ok(answers)
}

fn judge(owner: &Owner, metadata: &ObjectMeta) -> Known {
    match metadata.uid.as_deref() == Some(&owner.uid) {
        true => Known::Here(Owner::of(metadata)),
        false => Known::Gone,
    }
}

/// Whether the server cannot be asked now, which says nothing about the object.
fn is_away(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Discovery(_) => false,
        _ => true,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
