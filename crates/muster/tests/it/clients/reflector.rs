//! kube-rs' reflector: a copy of the server's state that follows every change, through lists and
//! streamed lists, restarts and forgotten history.

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Config, Resource, ResourceExt};
use muster_testkit::muster::Muster;
use muster_testkit::{http, wait};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(30);

/// Tries again at once, as good as: these tests end when the reflector has caught up.
struct Impatience;

impl Iterator for Impatience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}

impl Backoff for Impatience {
    fn reset(&mut self) {}
}

pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// A reflector at work.
pub(crate) struct Reflection<K>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    pub(crate) store: Store<K>,
    /// How often it began from the beginning.
    beginnings: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl<K> Reflection<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin + Send + Sync,
{
    pub(crate) fn start(api: Api<K>, kind: K::DynamicType, config: watcher::Config) -> Self {
        let writer = reflector::store::Writer::new(kind);
        let store = writer.as_reader();
        let beginnings = Arc::new(AtomicUsize::new(0));
        let begun = beginnings.clone();
        let mut events = watch(api, config)
            .backoff(Impatience)
            .reflect(writer)
            .boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if matches!(event, Ok(Event::Init)) {
                    begun.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Reflection {
            store,
            beginnings,
            task,
        }
    }

    /// Waits until the copy holds exactly these objects, by name and the label `n`.
    async fn shows(&self, expected: &[(&str, &str)]) -> Result<()> {
        let look = || {
            let mut found: Vec<(String, String)> = self
                .store
                .state()
                .iter()
                .map(|object| {
                    let label = object.labels().get("n").cloned();
                    (object.name_any(), label.unwrap_or_default())
                })
                .collect();
            found.sort();
            found
        };
        let same = |found: &[(String, String)]| {
            let pairs = found.iter().map(|(name, n)| (name.as_str(), n.as_str()));
            pairs.eq(expected.iter().copied())
        };
        wait::until_async(&format!("{expected:?} to be seen"), SOON, || async {
            Ok(same(&look()).then_some(()))
        })
        .await
        .with_context(|| format!("it shows {:?}", look()))
    }

    fn beginnings(&self) -> usize {
        self.beginnings.load(Ordering::SeqCst)
    }
}

impl<K> Drop for Reflection<K>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn registries() -> ApiResource {
    let kind = GroupVersionKind::gvk("sbomscanner.kubewarden.io", "v1alpha1", "Registry");
    ApiResource::from_gvk_with_plural(&kind, "registries")
}

/// An object of either kind: what one lacks, the other ignores.
fn body(kind: &str, name: &str, n: &str) -> Value {
    match kind {
        "ConfigMap" => json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"n": n}},
        }),
        _ => json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
            "metadata": {"name": name, "labels": {"n": n}},
            "spec": {"uri": "a.example.org", "catalogType": "NoCatalog", "repositories": [{"name": "app"}]},
        }),
    }
}

/// Makes an object, or changes it: kube-rs applies on the server's side.
async fn apply<K>(api: &Api<K>, kind: &str, name: &str, n: &str) -> Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let params = PatchParams::apply("reflector");
    api.patch(name, &params, &Patch::Apply(body(kind, name, n)))
        .await?;
    Ok(())
}

/// Everything a reflector goes through, but for trouble.
async fn journey<K>(
    api: Api<K>,
    kind: &str,
    dynamic: K::DynamicType,
    config: watcher::Config,
) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin + Send + Sync,
{
    for name in ["a", "b", "c"] {
        apply(&api, kind, name, "1").await?;
    }
    let reflection = Reflection::start(api.clone(), dynamic, config);
    reflection.store.wait_until_ready().await?;
    reflection
        .shows(&[("a", "1"), ("b", "1"), ("c", "1")])
        .await?;
    apply(&api, kind, "b", "2").await?;
    apply(&api, kind, "d", "1").await?;
    api.delete("a", &DeleteParams::default()).await?;
    reflection
        .shows(&[("b", "2"), ("c", "1"), ("d", "1")])
        .await?;
    assert_eq!(reflection.beginnings(), 1, "one list was enough");
    Ok(())
}

/// A list in pages, so that continuing is part of the journey.
pub(crate) fn listing() -> watcher::Config {
    watcher::Config::default().page_size(2)
}

pub(crate) fn streaming() -> watcher::Config {
    watcher::Config::default().streaming_lists()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_kinds_are_reflected_by_list_and_by_stream() -> Result<()> {
    for config in [listing(), streaming()] {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let client = client(&muster.kubeconfig_path()).await?;
        let kind = registries();
        let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
        journey(api, "Registry", kind, config).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_kinds_are_reflected_by_list_and_by_stream() -> Result<()> {
    for config in [listing(), streaming()] {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let client = client(&muster.kubeconfig_path()).await?;
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        journey(api, "ConfigMap", (), config).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_resumes_after_the_server_was_killed() -> Result<()> {
    for config in [listing(), streaming()] {
        let mut muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let client = client(&muster.kubeconfig_path()).await?;
        let kind = registries();
        let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
        let reflection = Reflection::start(api.clone(), kind, config);
        apply(&api, "Registry", "a", "1").await?;
        apply(&api, "Registry", "b", "1").await?;
        reflection.shows(&[("a", "1"), ("b", "1")]).await?;
        muster.kill9()?;
        muster.restart_in_place()?;
        apply(&api, "Registry", "a", "2").await?;
        api.delete("b", &DeleteParams::default()).await?;
        apply(&api, "Registry", "c", "1").await?;
        reflection.shows(&[("a", "2"), ("c", "1")]).await?;
        assert_eq!(reflection.beginnings(), 1, "it went on where it was");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_begins_again_where_its_history_is_forgotten() -> Result<()> {
    let forgetful = [
        "--scanning",
        "off",
        "--audit",
        "off",
        "--history-seconds=0",
        "--history-events=1",
        "--upkeep-seconds=1",
    ];
    for config in [listing(), streaming()] {
        let mut muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &forgetful)?;
        let kubeconfig = muster.kubeconfig_path();
        let home = muster.kubeconfig().server.clone();
        let kind = registries();
        let api: Api<DynamicObject> =
            Api::namespaced_with(client(&kubeconfig).await?, "default", &kind);
        let reflection = Reflection::start(api.clone(), kind.clone(), config);
        apply(&api, "Registry", "a", "1").await?;
        apply(&api, "Registry", "b", "1").await?;
        reflection.shows(&[("a", "1"), ("b", "1")]).await?;
        // Where so little is kept, it may have had to begin more than once already.
        let begun = reflection.beginnings();
        let seen = api
            .list(&Default::default())
            .await?
            .metadata
            .resource_version;

        // While the server is at another address, the reflector cannot follow.
        muster.restart()?;
        let elsewhere: Api<DynamicObject> =
            Api::namespaced_with(client(&kubeconfig).await?, "default", &kind);
        apply(&elsewhere, "Registry", "a", "2").await?;
        elsewhere.delete("b", &DeleteParams::default()).await?;
        apply(&elsewhere, "Registry", "c", "1").await?;
        let raw = http::Client::new(muster.kubeconfig())?;
        let target = format!(
            "/apis/sbomscanner.kubewarden.io/v1alpha1/registries?limit=1&resourceVersion={}&resourceVersionMatch=Exact",
            seen.context("a list has a version")?
        );
        wait::until_async("the history to be forgotten", SOON, || async {
            Ok((raw.get(&target).await?.status == 410).then_some(()))
        })
        .await?;

        muster.restart_at(&home)?;
        reflection.shows(&[("a", "2"), ("c", "1")]).await?;
        assert!(reflection.beginnings() > begun, "it had to begin again");
        apply(&api, "Registry", "c", "2").await?;
        reflection.shows(&[("a", "2"), ("c", "2")]).await?;
    }
    Ok(())
}
