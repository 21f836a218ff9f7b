//! The newest events of a resource, in memory, for all its watchers. One task follows the log and
//! keeps a ring; a watcher is a cursor that reads the ring, or the log where the ring no longer
//! reaches. A slow watcher therefore slows nobody, and misses nothing until the log itself is
//! compacted. What many watchers show alike is rendered once.

use crate::catalog::Served;
use crate::computed;
use crate::opaque::Lost;
use crate::render::{self, Form, Shown};
use crate::store::{Event, EventType, Store, StoreError};
use bytes::Bytes;
use muster_kind::Body;
use muster_kind::selector::{FieldSelector, LabelSelector};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// The ring keeps at most so many events and bytes.
const RING_EVENTS: usize = 4096;
const RING_BYTES: usize = 4 * 1024 * 1024;
/// How many events are read from the log at once.
const BATCH: usize = 500;
/// The log is looked at this often even if no hint comes.
const POLL: Duration = Duration::from_secs(5);

/// What selectors look at.
struct Facts {
    labels: BTreeMap<String, String>,
    fields: BTreeMap<String, String>,
}

/// One event with what watchers derive from it, each thing once.
pub(crate) struct Seen {
    pub(crate) event: Event,
    after: OnceLock<Facts>,
    before: OnceLock<Option<Facts>>,
    rendered: Mutex<Vec<((EventType, Form), Bytes)>>,
    lost: AtomicBool,
}

/// Which events a watcher wants.
pub(crate) struct Filter {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Filter {
    fn matches(&self, served: &Served, event: &Event, facts: &Facts) -> bool {
        self.labels.matches(&facts.labels)
            && self.fields.matches(|field| match field {
                "metadata.name" => Some(event.key.name.as_str()),
                "metadata.namespace" => Some(event.key.namespace.as_str()),
                field => facts.fields.get(field).map(String::as_str),
            })
            && (served.kind.is_namespaced() || self.namespace.is_none())
    }

    fn is_plain(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

impl Seen {
    fn new(event: Event) -> Self {
        Seen {
            event,
            after: OnceLock::new(),
            before: OnceLock::new(),
            rendered: Mutex::new(Vec::new()),
            lost: AtomicBool::new(false),
        }
    }

    /// What the event is to a watcher: entering its selection is an addition, leaving it a
    /// deletion, judged on the state before and after.
    pub(crate) fn for_watcher(&self, served: &Served, filter: &Filter) -> Option<EventType> {
        let event = &self.event;
        if filter
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != event.key.namespace)
        {
            return None;
        }
        if filter.is_plain() {
            return Some(event.event);
        }
        let after = self.after.get_or_init(|| facts(served, &event.body));
        let before = self
            .before
            .get_or_init(|| event.before.as_ref().map(|b| facts(served, b)));
        let is = event.event != EventType::Deleted && filter.matches(served, event, after);
        let was = before
            .as_ref()
            .is_some_and(|before| filter.matches(served, event, before));
        match (was, is) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    /// The object that a watcher is shown: one that leaves its selection as it was before, at the revision at
    /// which it left.
    pub(crate) fn body(&self, shown: EventType) -> &Body {
        match (&self.event.before, shown) {
            (Some(before), EventType::Deleted) if self.event.event != EventType::Deleted => before,
            _ => &self.event.body,
        }
    }

    /// The line a watcher gets.
    pub(crate) async fn line(
        &self,
        store: &dyn Store,
        served: &Served,
        form: Form,
        shown: EventType,
        with_columns: bool,
    ) -> Result<Shown, Lost> {
        if !with_columns && let Some(bytes) = self.rendered(shown, form) {
            return Ok(Shown::Whole(bytes));
        }
        let body = self.body(shown);
        let object = (self.event.revision, body);
        let line = line(store, served, form, shown, object, with_columns).await?;
        // Lines with opaque fields may be large, and the ring keeps what it is given.
        if let Shown::Whole(line) = &line
            && !with_columns
            && body.is_plain()
        {
            let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
            rendered.push(((shown, form), line.clone()));
        }
        Ok(line)
    }

    /// Notes that opaque bytes were missing in the middle of a line: the next watcher need not begin it.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Whether a line could not be finished.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn rendered(&self, shown: EventType, form: Form) -> Option<Bytes> {
        let rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        rendered
            .iter()
            .find(|(key, _)| *key == (shown, form))
            .map(|(_, bytes)| bytes.clone())
    }

    fn size(&self) -> usize {
        let before = self.event.before.as_ref().map_or(0, Body::text_len);
        let size = self.event.body.text_len().saturating_add(before);
        size.saturating_add(256)
    }
}

fn facts(served: &Served, body: &Body) -> Facts {
    let tree: Value = served.tree(body, 0);
    let index = crate::index::index(&tree, served);
    Facts {
        labels: index.labels,
        fields: index.fields,
    }
}

/// What stands before the object in a line of a watch.
pub(crate) fn line_start(shown: EventType) -> &'static str {
    match shown {
        EventType::Added => "{\"type\":\"ADDED\",\"object\":",
        EventType::Modified => "{\"type\":\"MODIFIED\",\"object\":",
        EventType::Deleted => "{\"type\":\"DELETED\",\"object\":",
    }
}

/// What stands behind the object in a line of a watch.
pub(crate) const LINE_END: &str = "}\n";

/// A line of a watch: the type and the object.
pub(crate) async fn line(
    store: &dyn Store,
    served: &Served,
    form: Form,
    shown: EventType,
    object: (u64, &Body),
    with_columns: bool,
) -> Result<Shown, Lost> {
    let around = (line_start(shown), LINE_END);
    render::one(store, served, form, object, with_columns, around).await
}

/// The newest events of one resource.
pub(crate) struct Hub {
    ring: RwLock<Ring>,
    head: watch::Sender<u64>,
}

struct Ring {
    events: VecDeque<Arc<Seen>>,
    /// The ring holds everything behind this revision.
    floor: u64,
    bytes: usize,
}

impl Hub {
    fn new(revision: u64) -> Self {
        Hub {
            ring: RwLock::new(Ring {
                events: VecDeque::new(),
                floor: revision,
                bytes: 0,
            }),
            head: watch::Sender::new(revision),
        }
    }

    /// The newest revision seen, as it changes.
    pub(crate) fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Some events behind a revision: from the ring, or from the log.
    pub(crate) async fn after(
        &self,
        store: &dyn Store,
        served: &Served,
        revision: u64,
    ) -> Result<Vec<Arc<Seen>>, StoreError> {
        if let Some(events) = self.in_ring(revision) {
            return Ok(events);
        }
        let events = events(store, served, revision).await?;
        Ok(events
            .into_iter()
            .map(|event| Arc::new(Seen::new(event)))
            .collect())
    }

    fn in_ring(&self, revision: u64) -> Option<Vec<Arc<Seen>>> {
        let ring = self.ring.read().unwrap_or_else(PoisonError::into_inner);
        if revision < ring.floor {
            return None;
        }
        let start = ring
            .events
            .partition_point(|seen| seen.event.revision <= revision);
        Some(
            ring.events
                .iter()
                .skip(start)
                .take(BATCH)
                .cloned()
                .collect(),
        )
    }

    fn push(&self, events: Vec<Event>) {
        let Some(newest) = events.last().map(|event| event.revision) else {
            return;
        };
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let seen = Arc::new(Seen::new(event));
            ring.bytes = ring.bytes.saturating_add(seen.size());
            ring.events.push_back(seen);
        }
        while ring.events.len() > RING_EVENTS || ring.bytes > RING_BYTES {
            let Some(oldest) = ring.events.pop_front() else {
                break;
            };
            ring.bytes -= oldest.size().min(ring.bytes);
            ring.floor = oldest.event.revision;
        }
        drop(ring);
        self.head.send_replace(newest);
    }

    /// Forgets the ring, so that watchers go back to the log.
    fn reset(&self, revision: u64) {
        let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
        *ring = Ring {
            events: VecDeque::new(),
            floor: revision,
            bytes: 0,
        };
        drop(ring);
        self.head.send_replace(revision);
    }
}

/// The hubs of all resources; one is started when its first watcher comes.
#[derive(Default)]
pub(crate) struct Hubs {
    hubs: tokio::sync::Mutex<BTreeMap<String, Arc<Hub>>>,
}

impl Hubs {
    /// The hub of a resource.
    pub(crate) async fn get(
        &self,
        server: &Arc<crate::server::Server>,
        served: &Arc<Served>,
    ) -> Result<Arc<Hub>, StoreError> {
        let mut hubs = self.hubs.lock().await;
        if let Some(hub) = hubs.get(&*served.resource) {
            return Ok(hub.clone());
        }
        let mut hint = server.store.hint(&served.resource);
        let hub = Arc::new(Hub::new(server.store.revision(&served.resource).await?));
        hubs.insert(served.resource.to_string(), hub.clone());
        let (store, served, stop) = (server.store.clone(), served.clone(), server.stop.clone());
        let tail = hub.clone();
        server.tasks.spawn(async move {
            loop {
                follow(&tail, &*store, &served).await;
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = hint.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep(POLL) => {}
                }
            }
        });
        Ok(hub)
    }
}

/// The next entries of the log, complete for whoever watches.
async fn events(store: &dyn Store, served: &Served, after: u64) -> Result<Vec<Event>, StoreError> {
    let mut events = store.events(&served.resource, after, BATCH).await?;
    computed::complete_events(store, served, &mut events).await?;
    Ok(events)
}

/// Reads the log up to its end.
async fn follow(hub: &Hub, store: &dyn Store, served: &Served) {
    loop {
        let head = *hub.head.borrow();
        match events(store, served, head).await {
            Ok(events) if events.is_empty() => return,
            Ok(events) => hub.push(events),
            Err(StoreError::Compacted { compacted, .. }) => hub.reset(compacted),
            Err(error) => {
                tracing::warn!(resource = %served.resource, %error, "following the log");
                return;
            }
        }
    }
}
