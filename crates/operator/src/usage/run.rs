//! The loops around the index: one follows the Images, the other writes the lists that are not what
//! they should be. A write that fails is tried again and holds up no other.

use super::Usage;
use super::index::{By, Correction, Name};
use super::narrow::Narrow;
use super::place::Place;
use crate::object::{IMAGE, is_absent};
use crate::work::{OPERATOR, Operator, Trouble};
use futures::{StreamExt, TryFutureExt, stream};
use kube::api::{ListMeta, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use muster_api::guard::WORKLOAD_SCAN;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Changes within this time are written together.
const TOGETHER: Duration = Duration::from_millis(250);
/// The same while reports are still being told, and most lists grow.
const GATHERING: Duration = Duration::from_secs(2);
/// How many lists are written at once.
const AT_ONCE: usize = 4;
/// What failed is tried again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// Images that are not watched are looked for this often.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// How many objects a list brings at once.
const PAGE: u32 = 500;

/// Keeps the lists of all Images until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, usage: Arc<Usage>, stop: CancellationToken) {
    let client = operator.client();
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(client, &usage) => {}
        () = write(&operator, &usage) => {}
    }
}

/// Follows the Images that were found for workloads.
async fn follow(client: &Client, usage: &Usage) {
    let images: Api<Narrow> = Api::all_with(client.clone(), &IMAGE.resource());
    let marked = watcher::Config::default().labels(&format!("{WORKLOAD_SCAN}=true"));
    let mut events = pin!(watcher(images, marked).default_backoff());
    let mut seen = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => see(usage, event, &mut seen),
            Err(error) => tracing::warn!(%error, "watching Images"),
        }
    }
}

fn see(usage: &Usage, event: Event<Narrow>, seen: &mut HashSet<Name>) {
    match event {
        Event::Init => seen.clear(),
        Event::InitApply(image) => {
            seen.insert(image.name());
            learn(usage, &image, By::Watch);
        }
        Event::InitDone => {
            let seen = take(seen);
            usage.change(|index| index.only(&seen));
        }
        Event::Apply(image) => learn(usage, &image, By::Watch),
        Event::Delete(image) => usage.change(|index| index.lost(&image.name())),
    }
}

fn learn(usage: &Usage, image: &Narrow, by: By) {
    usage.change(|index| index.image(image.name(), image.links(), image.told(), by));
}

/// Writes what is not what it should be, and looks for Images that are not watched.
async fn write(operator: &Operator, usage: &Usage) {
    let client = operator.client();
    let mut look = Instant::now() + LOOK;
    let mut has_swept = false;
    let mut undone = Undone::default();
    loop {
        tokio::select! {
            () = usage.changed.notified() => {}
            () = sleep_until(undone.until), if undone.is_any() => {
                let Undone { images, places, .. } = take(&mut undone);
                usage.locked().again(images, places);
            }
            () = sleep_until(look) => {
                usage.locked().search_again();
                look = Instant::now() + LOOK;
            }
        }
        let is_complete = usage.locked().is_complete();
        sleep(if is_complete { TOGETHER } else { GATHERING }).await;
        if is_complete && !has_swept {
            match sweep(client, usage).await {
                Ok(()) => has_swept = true,
                Err(error) => {
                    tracing::warn!(%error, "looking for Images that name workloads");
                    undone.is_unswept = true;
                }
            }
        }
        search(client, usage, &mut undone).await;
        correct(operator, usage, &mut undone).await;
    }
}

/// What failed.
struct Undone {
    images: Vec<Arc<Name>>,
    places: Vec<Place>,
    is_unswept: bool,
    /// When it is tried again.
    until: Instant,
}

impl Default for Undone {
    fn default() -> Self {
        Undone {
            images: Vec::new(),
            places: Vec::new(),
            is_unswept: false,
            until: Instant::now() + AGAIN,
        }
    }
}

impl Undone {
    fn is_any(&self) -> bool {
        self.is_unswept || !self.images.is_empty() || !self.places.is_empty()
    }
}

/// Writes the lists that are not what they should be now.
async fn correct(operator: &Operator, usage: &Usage, undone: &mut Undone) {
    let round = usage.locked().round();
    let written = stream::iter(round)
        .map(async |image| {
            let correction = usage.locked().correction(&image)?;
            let work = patch(operator.client(), &correction).map_err(Trouble::from);
            let done = operator.catch(OPERATOR, IMAGE.kind, work).await;
            Some((done, correction))
        })
        .buffer_unordered(AT_ONCE);
    let mut written = pin!(written);
    while let Some(done) = written.next().await {
        match done {
            None => {}
            Some((Ok(()), correction)) => usage.locked().written(correction),
            // Its end is told by the watch, or by the next search.
            Some((Err(Trouble::Api(error)), _)) if is_absent(&error) => {}
            Some((Err(error), correction)) => {
                let Name { namespace, name } = &*correction.image;
                tracing::warn!(%error, %namespace, %name, "writing who uses an Image");
                undone.images.push(correction.image);
            }
        }
    }
}

async fn patch(client: &Client, correction: &Correction) -> Result<(), kube::Error> {
    let Name { namespace, name } = &*correction.image;
    let status = status(&correction.reports);
    let patch = json!({ "status": status });
    IMAGE.merge(client, namespace, name, &patch).await
}

/// The status of an Image that these reports count.
fn status(reports: &[Arc<Name>]) -> Value {
    if reports.is_empty() {
        return Value::Null;
    }
    let named = reports.iter().map(|report| {
        let Name { namespace, name } = &**report;
        json!({"namespace": namespace, "name": name})
    });
    json!({"workloadScanReports": Value::from_iter(named)})
}

/// Looks for the Images of Registries that are the user's.
async fn search(client: &Client, usage: &Usage, undone: &mut Undone) {
    let places = usage.locked().searches();
    for place in places {
        let selected = ListParams::default().fields(&place.selector());
        let mut seen = HashSet::new();
        let path = format!("namespaces/{}/", place.namespace);
        let found = each(client, &path, selected, |image| {
            seen.insert(image.name());
            learn(usage, &image, By::Search);
        });
        match found.await {
            Ok(()) => usage.locked().only_at(&place, &seen),
            Err(error) => {
                tracing::warn!(%error, ?place, "looking for Images");
                undone.places.push(place);
            }
        }
    }
}

/// Looks once for Images of the user's that name a report: it may be gone since.
async fn sweep(client: &Client, usage: &Usage) -> Result<(), Trouble> {
    let selected = ListParams::default().labels(&format!("{WORKLOAD_SCAN}!=true"));
    let naming = |image: Narrow| {
        if !image.told().is_empty() {
            learn(usage, &image, By::Search);
        }
    };
    Ok(each(client, "", selected, naming).await?)
}

/// Reads Images page by page.
async fn each(
    client: &Client,
    within: &str,
    selected: ListParams,
    mut see: impl FnMut(Narrow),
) -> Result<(), kube::Error> {
    #[derive(Deserialize)]
    struct Page {
        metadata: ListMeta,
        items: Vec<Narrow>,
    }
    let resource = IMAGE.resource();
    let path = format!("/apis/{}/{within}{}", resource.api_version, resource.plural);
    let mut parameters = selected.limit(PAGE);
    loop {
        let request = kube::core::Request::new(&path)
            .list(&parameters)
            .map_err(kube::Error::BuildRequest)?;
        let page: Page = client.request(request).await?;
        page.items.into_iter().for_each(&mut see);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_empty_is_taken_away() {
        assert_eq!(status(&[]), Value::Null);
        let report = Arc::new(Name::new("production", "deployment-nginx"));
        let expected = json!([{"name": "deployment-nginx", "namespace": "production"}]);
        assert_eq!(status(&[report])["workloadScanReports"], expected);
    }

    #[test]
    fn images_that_went_while_nobody_watched_are_forgotten() {
        let usage = Usage::default();
        let image = |name: &str| -> Narrow {
            let about = json!({"registry": "workload-scan-x", "repository": "a", "tag": "1"});
            let image = json!({
                "metadata": {"namespace": "n", "name": name}, "imageMetadata": about,
            });
            serde_json::from_value(image).unwrap()
        };
        let mut seen = HashSet::new();
        for event in [
            Event::Init,
            Event::InitApply(image("stays")),
            Event::InitApply(image("goes")),
            Event::InitApply(image("went")),
            Event::InitDone,
            Event::Delete(image("goes")),
            Event::Apply(image("comes")),
            Event::Init,
            Event::InitApply(image("stays")),
            Event::InitApply(image("comes")),
            Event::InitDone,
        ] {
            see(&usage, event, &mut seen);
        }
        usage.complete();
        usage.report("b", "report", ["n/workload-scan-x/a:1".to_owned()].into());
        let mut index = usage.locked();
        let round = index.round();
        let corrections = round.iter().filter_map(|image| index.correction(image));
        let names: Vec<_> = corrections.map(|one| one.image.name.to_string()).collect();
        assert_eq!(names, ["comes", "stays"]);
    }
}
