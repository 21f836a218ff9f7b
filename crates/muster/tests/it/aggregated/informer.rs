//! Informers through the aggregator: copies that stay true while everybody writes and replicas are
//! killed.
//!
//! `MUSTER_SOAK_SECONDS` says how long (30), `MUSTER_SOAK_SEED` which random choices are made.

use super::{MUSTER, SOON, namespace, options};
use crate::clients::reflector::{Reflection, client, listing, streaming};
use anyhow::{Context, Result};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, ResourceExt};
use muster_testkit::storage::{Cluster, Options};
use muster_testkit::wait;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const SPACE: &str = "informed";
const WRITERS: u64 = 4;
const NAMES: usize = 40;
const SEED: u64 = 20_261_116;
/// The pause between two kills of a replica.
const KILL_EVERY: Duration = Duration::from_secs(7);

fn images() -> ApiResource {
    let kind = GroupVersionKind::gvk("storage.sbomscanner.kubewarden.io", "v1alpha1", "Image");
    ApiResource::from_gvk_with_plural(&kind, "images")
}

/// Writes at random until the end. A replica that is killed takes requests with it; what became of
/// them, the copies must know.
async fn write(api: Api<DynamicObject>, seed: u64, end: Instant) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut written = 0;
    while Instant::now() < end {
        let name = format!("i-{}", random.random_range(0..NAMES));
        let done = match random.random_range(0..4) {
            0 => api.delete(&name, &DeleteParams::default()).await.is_ok(),
            _ => {
                let body = json!({
                    "apiVersion": super::API_VERSION, "kind": "Image", "metadata": {
                        "name": name, "labels": {"n": random.random_range(0..1000).to_string()},
                    },
                    "imageMetadata": {"registry": "hub", "repository": "team/app"},
                });
                let params = PatchParams::apply("informer").force();
                api.patch(&name, &params, &Patch::Apply(body)).await.is_ok()
            }
        };
        written += u64::from(done);
    }
    written
}

/// Names and revisions.
type State = BTreeMap<String, String>;

fn state(objects: impl IntoIterator<Item = (String, Option<String>)>) -> State {
    let objects = objects.into_iter();
    objects
        .map(|(name, revision)| (name, revision.unwrap_or_default()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_stay_true_while_everybody_writes_and_replicas_are_killed() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(number("MUSTER_SOAK_SECONDS").unwrap_or(30));
    let seed = number("MUSTER_SOAK_SEED").unwrap_or(SEED);
    eprintln!("informers: MUSTER_SOAK_SEED={seed} for {duration:?}");
    let mut cluster = Cluster::start(
        MUSTER,
        &Options {
            replicas: 2,
            ..options()?
        },
    )?;
    namespace(&cluster.kubectl()?, SPACE)?;
    let client = client(&cluster.kubernetes().kubeconfig_path()).await?;
    let kind = images();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), SPACE, &kind);
    let everywhere: Api<DynamicObject> = Api::all_with(client, &kind);
    let copies = [
        Reflection::start(api.clone(), kind.clone(), listing()),
        Reflection::start(api.clone(), kind.clone(), streaming()),
        Reflection::start(everywhere.clone(), kind.clone(), streaming()),
        Reflection::start(everywhere, kind, listing()),
    ];
    let end = Instant::now() + duration;
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(write(api.clone(), seed ^ number, end));
    }
    let killing = tokio::task::spawn_blocking(move || -> Result<Cluster> {
        let mut replica = 0;
        while Instant::now() + KILL_EVERY < end {
            let due = Instant::now() + KILL_EVERY;
            wait::until("the next kill", KILL_EVERY * 2, || {
                Ok((Instant::now() >= due).then_some(()))
            })?;
            cluster.replica(replica).kill9()?;
            cluster.replica(replica).restart()?;
            replica = 1 - replica;
        }
        Ok(cluster)
    });
    let cluster = killing.await??;
    let mut written = 0;
    while let Some(count) = writers.join_next().await {
        written += count?;
    }
    assert!(written > 20, "only {written} writes");
    let listed = wait::until_async("a list of what is there", SOON, || async {
        Ok(api.list(&Default::default()).await.ok())
    })
    .await?;
    let objects = listed.items.into_iter();
    let expected = state(objects.map(|object| (object.name_any(), object.resource_version())));
    for (number, copy) in copies.iter().enumerate() {
        let seen = || {
            let objects = copy.store.state();
            state(
                objects
                    .iter()
                    .map(|object| (object.name_any(), object.resource_version())),
            )
        };
        wait::until_async("the copy to be true", SOON, || async {
            Ok((seen() == expected).then_some(()))
        })
        .await
        .with_context(|| format!("copy {number} holds {:?}, not {expected:?}", seen()))?;
    }
    eprintln!("informers: {written} writes, {} objects", expected.len());
    drop(cluster);
    Ok(())
}
