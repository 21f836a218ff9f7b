//! A watcher: follows its selection, hangs up and resumes at random, lists anew at random or when
//! its revision is too old, and keeps a trace of everything it saw.

use super::Resource;
use super::model::{self, BEGINNING, Change, Sighting, Step, identify, text};
use super::selection::Selection;
use super::target::{Generation, Target};
use anyhow::{Context, Result, bail, ensure};
use http::Method;
use muster_testkit::http::Request;
use muster_testkit::watch::{Next, Watch};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a watch may take to open on a busy machine.
const OPEN: Duration = Duration::from_secs(60);
/// How long the last events may take to arrive once all writers have stopped.
const CATCH_UP: Duration = Duration::from_secs(120);

/// How a watcher goes about its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Manner {
    /// Hangs up at random, and lists anew now and then.
    Restless,
    /// From the beginning, resuming only where it must; its trace is the log.
    Scribe,
}

pub(super) struct Watcher {
    pub(super) resource: Resource,
    pub(super) selection: Selection,
    pub(super) manner: Manner,
    pub(super) random: StdRng,
    pub(super) target: Target,
    /// The last revision of the resource, once all writers have stopped.
    pub(super) head: watch::Receiver<Option<u64>>,
    pub(super) trace: Vec<Step>,
    /// A scribe keeps the log as well.
    pub(super) log: Vec<model::Entry>,
}

/// What one event line says.
enum Told {
    Event(Change, Value),
    Bookmark(u64, bool),
    TooOld,
}

impl Watcher {
    /// Watches until everything up to the head has been seen.
    pub(super) async fn run(mut self) -> Result<Watcher> {
        let mut cursor = (self.manner == Manner::Scribe).then_some(BEGINNING);
        let mut deadline = None;
        loop {
            let head = *self.head.borrow();
            if let (Some(head), Some(seen)) = (head, cursor)
                && seen >= head
            {
                return Ok(self);
            }
            if head.is_some() {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + CATCH_UP);
                ensure!(
                    Instant::now() < deadline,
                    "{:?} {:?} is still at {cursor:?} of {head:?}",
                    self.resource,
                    self.selection
                );
            }
            let preferred = self.random.random_range(0..1000);
            let generation = self.target.generation(preferred).await?;
            if let Err(error) = self.once(&generation, &mut cursor, head.is_some()).await {
                self.target.forgive(&generation, error)?;
            }
        }
    }

    /// One list if need be, and one watch.
    async fn once(
        &mut self,
        generation: &Generation,
        cursor: &mut Option<u64>,
        ending: bool,
    ) -> Result<()> {
        let restless = self.manner == Manner::Restless;
        if cursor.is_some() && restless && self.random.random_bool(0.1) {
            *cursor = None;
        }
        let streamed = cursor.is_none() && self.random.random_bool(0.3);
        if cursor.is_none() && !streamed {
            let (revision, objects) = self.list(generation).await?;
            self.trace.push(Step::State(revision, objects));
            *cursor = Some(revision);
        }
        let mut query = format!("watch=true&{}", self.selection.query());
        match *cursor {
            Some(revision) => query.push_str(&format!("resourceVersion={revision}&")),
            None => query.push_str("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"),
        }
        // The bookmark at the end of its time tells a watcher without events how far it is.
        let seconds = if ending {
            1
        } else {
            self.random.random_range(1..6)
        };
        if streamed || ending || self.random.random_bool(0.5) {
            query.push_str("allowWatchBookmarks=true&");
        }
        if ending || restless && self.random.random_bool(0.5) {
            query.push_str(&format!("timeoutSeconds={seconds}&"));
        }
        let target = format!("{}?{query}", self.selection.path(self.resource));
        let watch = generation
            .client
            .watch(Request::new(Method::GET, target), OPEN);
        self.follow(watch.await?, cursor).await
    }

    async fn follow(&mut self, mut watch: Watch, cursor: &mut Option<u64>) -> Result<()> {
        if watch.status == 410 {
            *cursor = None;
            return Ok(());
        }
        if watch.status != 200 {
            let status = watch.status;
            let body = watch.rest(OPEN).await?;
            bail!(
                "a watch was answered with {status}: {}",
                String::from_utf8_lossy(&body)
            );
        }
        let patience = Duration::from_millis(self.random.random_range(200..2000));
        let mut left = match self.manner {
            Manner::Restless => self.random.random_range(1..300),
            Manner::Scribe => usize::MAX,
        };
        let mut initial = cursor.is_none().then(BTreeMap::new);
        while left > 0 {
            let line = match watch.next(patience).await? {
                Next::Line(line) => line,
                Next::End(_) => return Ok(()),
                Next::Quiet if self.manner == Manner::Restless => return Ok(()),
                Next::Quiet if self.head.borrow().is_some() => return Ok(()),
                Next::Quiet => continue,
            };
            left -= usize::from(initial.is_none());
            match (told(&line)?, &mut initial) {
                (Told::TooOld, _) => {
                    *cursor = None;
                    return Ok(());
                }
                (Told::Event(Change::Added, object), Some(objects)) => {
                    let (revision, key, content) = identify(&object).context("an object")?;
                    let doubled = objects.insert(key, (revision, content));
                    ensure!(doubled.is_none(), "doubled in the initial state: {object}");
                }
                (Told::Bookmark(revision, true), Some(objects)) => {
                    let state = Step::State(revision, std::mem::take(objects));
                    self.trace.push(state);
                    *cursor = Some(revision);
                    initial = None;
                }
                (Told::Event(change, object), None) => {
                    *cursor = Some(self.see(change, &object)?);
                }
                (Told::Bookmark(revision, false), None) => {
                    self.trace.push(Step::Mark(revision));
                    *cursor = Some(revision);
                }
                _ => bail!("out of place: {}", String::from_utf8_lossy(&line)),
            }
        }
        Ok(())
    }

    fn see(&mut self, change: Change, object: &Value) -> Result<u64> {
        let entry = model::entry(change, object).context("an object")?;
        let revision = entry.sighting.revision;
        let seen: Sighting = entry.sighting.clone();
        self.trace.push(Step::Event(seen));
        if self.manner == Manner::Scribe {
            self.log.push(entry);
        }
        Ok(revision)
    }

    /// The whole list, in pages or in one.
    async fn list(
        &mut self,
        generation: &Generation,
    ) -> Result<(u64, BTreeMap<Box<str>, (u64, u64)>)> {
        let limit = match self.random.random_bool(0.5) {
            true => self.random.random_range(1..20),
            false => 0,
        };
        let base = self.selection.path(self.resource);
        let base = format!("{base}?{}limit={limit}", self.selection.query());
        let (mut objects, mut next) = (BTreeMap::new(), base.clone());
        loop {
            let answer = generation.client.get(&next).await?;
            ensure!(
                answer.status == 200,
                "a list was answered with {:?}",
                answer.body
            );
            let page = answer.json()?;
            for object in page["items"].as_array().into_iter().flatten() {
                let (revision, key, content) = identify(object).context("an object")?;
                let doubled = objects.insert(key, (revision, content));
                ensure!(doubled.is_none(), "doubled in a list: {object}");
            }
            match text(&page, "/metadata/continue") {
                token if token.is_empty() => {
                    let revision = text(&page, "/metadata/resourceVersion").parse()?;
                    return Ok((revision, objects));
                }
                token => next = format!("{base}&continue={token}"),
            }
        }
    }
}

fn told(line: &[u8]) -> Result<Told> {
    let mut event: Value = serde_json::from_slice(line)?;
    let object = event["object"].take();
    let change = match text(&event, "/type").as_str() {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        "BOOKMARK" => {
            let revision = text(&object, "/metadata/resourceVersion").parse()?;
            let end = object.pointer("/metadata/annotations/k8s.io~1initial-events-end");
            return Ok(Told::Bookmark(revision, end.is_some()));
        }
        "ERROR" if object["code"] == 410 => return Ok(Told::TooOld),
        _ => bail!("a watch says {}", String::from_utf8_lossy(line)),
    };
    Ok(Told::Event(change, object))
}
