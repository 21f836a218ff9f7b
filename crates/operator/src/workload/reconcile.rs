//! One namespace: which workloads run there, what each of them runs, where that is scanned; then the
//! reports that say so. What the namespace wants of the Registries is only noted here, since several
//! namespaces may want something of the same one.

use super::ladder::Wish;
use super::managed;
use super::pod::{Container, Owner, Pod};
use super::report::{self, Images, Place, container, gather, names};
use super::reuse::Elsewhere;
use super::seen::{Running, Seen};
use super::view::{Held, Wanted};
use super::{SOON, Task, Workloads};
use crate::access::host_of;
use crate::object::{REGISTRY, WORKLOAD_REPORT, is_absent};
use crate::work::Trouble;
use kube::api::{DeleteParams, ObjectMeta};
use muster_api::link;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// How often workloads without pods are looked for: nothing tells when one goes.
const IDLE: Duration = Duration::from_secs(300);

/// A kept report, as far as it is needed to go on with it.
#[derive(Deserialize)]
struct Kept {
    metadata: ObjectMeta,
    spec: KeptSpec,
}

#[derive(Deserialize)]
struct KeptSpec {
    containers: Vec<KeptContainer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptContainer {
    name: String,
    image_ref: KeptImage,
}

#[derive(Deserialize)]
struct KeptImage {
    registry: String,
    namespace: String,
    repository: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    digest: String,
}

impl Workloads {
    /// Makes the reports of a namespace what they should be.
    pub(super) async fn namespace(&self, namespace: &str) -> Result<Option<Duration>, Trouble> {
        let scene = self.view().scene(namespace);
        let Some(configuration) = &scene.configuration else {
            return self.leave(namespace, &scene.reports).await;
        };
        let mut workloads = self.running(namespace, scene.pods).await?;
        let idle = self.idle(namespace, &scene.reports, scene.held, &workloads);
        let idle = idle.await?;
        let has_idle = !idle.is_empty();
        workloads.extend(idle);

        let images = workloads.values().flatten().map(|one| &one.image);
        let elsewhere = match scene.has_others {
            true => Elsewhere::look(self.home(), configuration.home(namespace), images).await?,
            false => Elsewhere::default(),
        };
        let places = Places {
            namespace: configuration.home(namespace),
            elsewhere,
        };
        let mut wanted = Wanted::new();
        let mut held = BTreeMap::new();
        for (workload, name) in names(workloads.keys()) {
            let images = &workloads[workload];
            self.write(namespace, &name, workload, images, &places, &scene.reports)
                .await?;
            places.collect(images, &mut wanted);
            let (workload, images) = (workload.clone(), images.clone());
            held.insert(name, Held { workload, images });
        }
        for name in scene
            .reports
            .keys()
            .filter(|name| !held.contains_key(*name))
        {
            self.forget(namespace, name).await?;
        }
        self.noted(namespace, wanted, held);
        Ok(has_idle.then_some(IDLE))
    }

    /// Takes away all there is in a namespace that is not looked at.
    async fn leave(
        &self,
        namespace: &str,
        reports: &BTreeMap<String, String>,
    ) -> Result<Option<Duration>, Trouble> {
        for name in reports.keys() {
            self.forget(namespace, name).await?;
        }
        self.noted(namespace, Wanted::new(), BTreeMap::new());
        Ok(None)
    }

    fn noted(&self, namespace: &str, wanted: Wanted, held: BTreeMap<String, Held>) {
        let (affected, is_complete) = {
            let mut view = self.view();
            let affected = view.note(namespace, wanted, held);
            (affected, view.has_come_round())
        };
        for place in affected {
            self.want(Task::Registry(place), SOON);
        }
        if is_complete {
            self.usage.complete();
        }
    }

    /// What runs, by workload. A pod whose owner has gone is about to go too.
    async fn running(
        &self,
        namespace: &str,
        pods: Vec<(String, Pod)>,
    ) -> Result<BTreeMap<Owner, Images>, Trouble> {
        let stands_alone = |owner: &Owner| owner.group().is_empty() && owner.kind == "Node";
        let owners = pods.iter().filter_map(|(_, pod)| pod.owner.clone());
        let owners: BTreeSet<Owner> = owners.filter(|owner| !stands_alone(owner)).collect();
        let above = self.owners.workloads(self.cluster(), namespace, owners);
        let above: HashMap<Owner, Option<Owner>> = above.await?;
        let of_workloads = pods.into_iter().filter_map(|(name, pod)| {
            let itself = || Owner {
                api_version: "v1".into(),
                kind: "Pod".into(),
                name,
                uid: pod.uid.clone(),
            };
            let workload = match &pod.owner {
                None => itself(),
                Some(owner) if stands_alone(owner) => itself(),
                Some(owner) => above.get(owner)?.clone()?,
            };
            Some((workload, pod.containers))
        });
        Ok(gather(of_workloads))
    }

    /// Workloads that have a report and run nothing now, as long as they are there: a CronJob between
    /// two runs, or what was scaled to nothing. A finished pod will not run again.
    async fn idle(
        &self,
        namespace: &str,
        reports: &BTreeMap<String, String>,
        mut held: BTreeMap<String, Held>,
        running: &BTreeMap<Owner, Images>,
    ) -> Result<BTreeMap<Owner, Images>, Trouble> {
        let current: BTreeSet<String> = names(running.keys()).into_values().collect();
        let mut idle = BTreeMap::new();
        for name in reports.keys() {
            let known = match held.remove(name) {
                Some(known) => Some(known),
                // It is written anew anyway.
                None if current.contains(name) => None,
                None => self.recall(namespace, name).await?,
            };
            if let Some(Held { workload, images }) = known
                && !running.contains_key(&workload)
                && workload.kind != "Pod"
            {
                idle.insert(workload, images);
            }
        }
        let asked = idle.keys().cloned().collect();
        let remaining = self.owners.remaining(self.cluster(), namespace, asked);
        let remaining = remaining.await?;
        idle.retain(|workload, _| remaining.contains(workload));
        Ok(idle)
    }

    /// What a report says that an operator before this one wrote.
    async fn recall(&self, namespace: &str, name: &str) -> Result<Option<Held>, Trouble> {
        let kept: Option<Kept> = WORKLOAD_REPORT.read(self.home(), namespace, name).await?;
        let Some(kept) = kept else {
            return Ok(None);
        };
        let owners = kept.metadata.owner_references.unwrap_or_default();
        let Some(owner) = owners.into_iter().next() else {
            return Ok(None);
        };
        let mut images = Images::new();
        for one in kept.spec.containers {
            let reference = one.image_ref;
            let api = REGISTRY.within(self.home(), &reference.namespace);
            let registry = api.get_opt(&reference.registry).await?;
            let Some(host) = registry.as_ref().and_then(host_of) else {
                continue;
            };
            let mut image = format!("{host}/{}", reference.repository);
            if !reference.tag.is_empty() {
                image = format!("{image}:{}", reference.tag);
            }
            // A digest that was pinned is not told from one that was pulled; both are what ran.
            let (image, id) = match (reference.tag.is_empty(), reference.digest.is_empty()) {
                (true, false) => (format!("{image}@{}", reference.digest), String::new()),
                (_, true) => (image, String::new()),
                (false, false) => (image, format!("x@{}", reference.digest)),
            };
            if let Ok(image) = Seen::read(&image, &id) {
                let name = one.name;
                images.insert(Container { name, image });
            }
        }
        let workload = Owner {
            api_version: owner.api_version,
            kind: owner.kind,
            name: owner.name,
            uid: owner.uid,
        };
        Ok(Some(Held { workload, images }))
    }

    /// Writes a report, unless it says that already.
    async fn write(
        &self,
        namespace: &str,
        name: &str,
        workload: &Owner,
        images: &Images,
        places: &Places<'_>,
        written: &BTreeMap<String, String>,
    ) -> Result<(), Trouble> {
        let containers: Vec<Value> = images
            .iter()
            .map(|one| {
                let place = places.of(&one.image);
                let message = self.absence(&place, &one.image);
                container(one, &place, message)
            })
            .collect();
        let (object, content) = report::object(namespace, name, workload, &containers);
        let links = link::asked(&object).into_iter().collect();
        self.usage.report(namespace, name, links);
        if written.get(name) == Some(&content) {
            return Ok(());
        }
        let applied = WORKLOAD_REPORT.apply(self.home(), namespace, name, &object);
        applied.await?;
        self.view().report(namespace, name, Some(content));
        Ok(())
    }

    /// What is to be said of an image that its registry does not have.
    fn absence(&self, place: &Place, image: &Seen) -> Option<String> {
        let Seen {
            host,
            repository,
            tag,
            running,
        } = image;
        let (what, message) = match (running, tag) {
            (Running::Pinned(digest) | Running::Pulled(digest), _) => (
                format!("{repository}@{digest}"),
                format!("{host} does not have the image that runs, {digest}, any longer"),
            ),
            (_, Some(tag)) => (
                format!("{repository}:{tag}"),
                format!("{host} does not have the tag {tag} of {repository}"),
            ),
            _ => return None,
        };
        self.view().is_missing(place, &what).then_some(message)
    }

    /// Deletes a report.
    async fn forget(&self, namespace: &str, name: &str) -> Result<(), Trouble> {
        let api = WORKLOAD_REPORT.within(self.home(), namespace);
        match api.delete(name, &DeleteParams::background()).await {
            Err(error) if !is_absent(&error) => return Err(error.into()),
            _ => {}
        }
        self.view().report(namespace, name, None);
        self.usage.gone(namespace, name);
        Ok(())
    }
}

/// Where the images of a namespace are scanned: where somebody else does it already, otherwise by a
/// Registry of ours.
struct Places<'a> {
    namespace: &'a str,
    elsewhere: Elsewhere,
}

impl Places<'_> {
    fn of(&self, image: &Seen) -> Place {
        let elsewhere = self.elsewhere.registry(image);
        Place {
            namespace: self.namespace.to_owned(),
            registry: elsewhere.unwrap_or_else(|| managed::name(&image.host)),
        }
    }

    /// Adds what our Registries must hold for these images.
    fn collect(&self, images: &Images, wanted: &mut Wanted) {
        for Container { image, .. } in images {
            if self.elsewhere.registry(image).is_some() {
                continue;
            }
            let new = || (image.host.clone(), BTreeMap::new());
            let (_, wishes) = wanted.entry(self.of(image)).or_insert_with(new);
            let wishes = wishes.entry(image.repository.clone()).or_default();
            wishes.extend(Wish::of(image));
        }
    }
}
