//! One namespace: which workloads run there, what each of them runs, where that is scanned; then the
//! reports that say so. What the namespace wants of the Registries is only noted here, since several
//! namespaces may want something of the same one.

use super::ladder::Wish;
use super::managed;
use super::pod::{Container, Owner, Pod};
use super::report::{self, Held, Images, Place, container, gather};
use super::reuse::Elsewhere;
use super::seen::{Running, Seen};
use super::view::{Report, Wanted};
use super::{SOON, Task, Workloads};
use crate::object::{WORKLOAD_REPORT, is_absent};
use crate::work::Trouble;
use kube::ResourceExt;
use kube::api::DeleteParams;
use muster_api::guard::WORKLOAD_SCAN;
use muster_api::link;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// How often workloads without pods are looked for: nothing tells when one goes.
const IDLE: Duration = Duration::from_secs(300);
/// The same where their reports are not collected with them.
const IDLE_ELSEWHERE: Duration = Duration::from_secs(30);

impl Workloads {
    /// Makes the reports of a namespace what they should be.
    pub(super) async fn namespace(&self, namespace: &str) -> Result<Option<Duration>, Trouble> {
        let scene = self.view().scene(namespace);
        let Some(configuration) = &scene.configuration else {
            return self.leave(namespace, &scene.reports).await;
        };
        let mut workloads = self.running(namespace, scene.pods).await?;
        let idle = self.idle(namespace, &scene.reports, &workloads).await?;
        let has_idle = !idle.is_empty();
        workloads.extend(idle);

        let images = workloads.values().flatten().map(|one| &one.image);
        let elsewhere = match scene.has_others {
            true => Elsewhere::look(self.home(), configuration.home(namespace), images).await?,
            false => Elsewhere::default(),
        };
        let places = Places {
            namespace: configuration.home(namespace),
            platforms: configuration.platforms(),
            elsewhere,
        };
        let mut wanted = Wanted::new();
        let mut names = BTreeMap::new();
        for (workload, name) in report::names(workloads.keys()) {
            places.collect(&workloads[workload], &mut wanted);
            names.insert(name, workload.clone());
        }
        // What is wanted does not depend on whether every report can be written.
        self.noted(namespace, wanted);
        let mut outcome = Ok(());
        for name in scene
            .reports
            .keys()
            .filter(|name| !names.contains_key(*name))
        {
            outcome = outcome.and(self.forget(namespace, name).await);
        }
        for (name, workload) in names {
            if self.stop.is_cancelled() {
                break;
            }
            let images = workloads.remove(&workload).unwrap_or_default();
            let held = Held { workload, images };
            let written = scene.reports.get(&name);
            let done = self.write(namespace, &name, held, &places, written).await;
            outcome = outcome.and(done);
        }
        let again = match self.operator.is_at_home() {
            true => IDLE,
            false => IDLE_ELSEWHERE,
        };
        outcome.map(|()| has_idle.then_some(again))
    }

    /// Takes away all there is in a namespace that is not looked at.
    async fn leave(
        &self,
        namespace: &str,
        reports: &BTreeMap<String, Report>,
    ) -> Result<Option<Duration>, Trouble> {
        self.noted(namespace, Wanted::new());
        let mut outcome = Ok(None);
        for name in reports.keys() {
            outcome = outcome.and(self.forget(namespace, name).await.map(|()| None));
        }
        outcome
    }

    fn noted(&self, namespace: &str, wanted: Wanted) {
        let affected = self.view().note(namespace, wanted);
        for place in affected {
            self.want(Task::Registry(place), SOON);
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
    /// two runs, or what was scaled to nothing. A finished pod will not run again. Where nobody
    /// collects what owners leave behind, a workload must be seen to count as there.
    async fn idle(
        &self,
        namespace: &str,
        reports: &BTreeMap<String, Report>,
        running: &BTreeMap<Owner, Images>,
    ) -> Result<BTreeMap<Owner, Images>, Trouble> {
        let held = reports.values().filter_map(|report| report.held.as_ref());
        let mut idle: BTreeMap<Owner, Images> = held
            .filter(|held| !running.contains_key(&held.workload) && held.workload.kind != "Pod")
            .map(|held| (held.workload.clone(), held.images.clone()))
            .collect();
        let asked = idle.keys().cloned().collect();
        let hidden = self.operator.is_at_home();
        let remaining = self
            .owners
            .remaining(self.cluster(), namespace, asked, hidden);
        let remaining = remaining.await?;
        idle.retain(|workload, _| remaining.contains(workload));
        Ok(idle)
    }

    /// Writes a report, unless it says that already.
    async fn write(
        &self,
        namespace: &str,
        name: &str,
        held: Held,
        places: &Places<'_>,
        written: Option<&Report>,
    ) -> Result<(), Trouble> {
        let containers: Vec<Value> = held
            .images
            .iter()
            .map(|one| {
                let place = places.of(&one.image);
                let message = self.absence(&place, &one.image);
                container(one, &place, message)
            })
            .collect();
        let (object, content) = report::object(namespace, name, &held, &containers);
        let links = link::asked(&object).into_iter().collect();
        self.usage.report(namespace, name, links);
        if written.is_some_and(|written| written.content == content) {
            return Ok(());
        }
        if written.is_none() && self.is_others(namespace, name).await? {
            tracing::warn!(
                namespace,
                name,
                "somebody made a report of the name that the workload scan needs; it is left alone"
            );
            return Ok(());
        }
        let applied = WORKLOAD_REPORT.apply(self.home(), namespace, name, &object);
        applied.await?;
        let report = Report {
            content,
            held: Some(held),
        };
        self.view().report(namespace, name, Some(report));
        Ok(())
    }

    /// Whether there is a report of that name that is not ours.
    async fn is_others(&self, namespace: &str, name: &str) -> Result<bool, Trouble> {
        let api = WORKLOAD_REPORT.within(self.home(), namespace);
        let found = match api.get_metadata(name).await {
            Err(error) if is_absent(&error) => return Ok(false),
            found => found?,
        };
        let marked = found.labels().get(WORKLOAD_SCAN);
        Ok(marked.is_none_or(|value| value != "true"))
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
    platforms: String,
    elsewhere: Elsewhere,
}

impl Places<'_> {
    fn of(&self, image: &Seen) -> Place {
        let elsewhere = self.elsewhere.registry(image, &self.platforms);
        Place {
            namespace: self.namespace.to_owned(),
            registry: elsewhere.unwrap_or_else(|| managed::name(&image.host)),
        }
    }

    /// Adds what our Registries must hold for these images.
    fn collect(&self, images: &Images, wanted: &mut Wanted) {
        for Container { image, .. } in images {
            let place = self.of(image);
            if place.registry != managed::name(&image.host) {
                continue;
            }
            let new = || (image.host.clone(), BTreeMap::new());
            let (_, wishes) = wanted.entry(place).or_insert_with(new);
            let wishes = wishes.entry(image.repository.clone()).or_default();
            wishes.extend(Wish::of(image));
        }
    }
}
