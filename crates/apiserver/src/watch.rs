//! Watches: the present state if asked for, then every event behind it, in order, once, until the
//! client leaves, the time is up, the server stops or the log no longer reaches back.

use crate::catalog::Served;
use crate::failure::store_failure;
use crate::hub::{self, Filter, Hub};
use crate::metrics::Raised;
use crate::negotiate::View;
use crate::opaque::{Lost, Opaque};
use crate::outgoing::{Halt, Outgoing};
use crate::query::{ListOptions, Revision};
use crate::render::{self, Form, Shown};
use crate::respond::{Answer, BodyError};
use crate::server::Server;
use crate::store::{EventType, ListQuery, StoreError, Stored};
use crate::{computed, respond};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use muster_kind::{Body, Status};
use rand::RngExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Bookmarks come about this often.
const BOOKMARK: Duration = Duration::from_secs(60);
/// Several small lines leave as one frame up to this.
const FRAME: usize = 32 * 1024;

/// Answers a watch.
pub(crate) async fn watch(
    server: &Arc<Server>,
    served: &Arc<Served>,
    namespace: Option<String>,
    options: ListOptions,
    form: Form,
) -> Result<Answer, Status> {
    let hub = server
        .hubs
        .get(server, served)
        .await
        .map_err(store_failure)?;
    let current = server
        .store
        .revision(&served.resource)
        .await
        .map_err(store_failure)?;
    let start = match (options.revision, options.send_initial_events) {
        (Revision::Newest | Revision::Any, Some(false)) => Start::Behind(current),
        (Revision::Newest | Revision::Any, _) => Start::State,
        (Revision::NotOlderThan(asked) | Revision::Exact(asked), initial) => {
            if initial != Some(true) {
                Start::Behind(asked)
            } else if asked > current {
                return Err(Status::future_revision(asked, current));
            } else {
                Start::State
            }
        }
    };
    let timeout = options
        .timeout
        .unwrap_or_else(|| Duration::from_secs(rand::rng().random_range(1800..3600)));
    let now = Instant::now();
    let (sender, receiver) = mpsc::channel(8);
    let watcher = Watcher {
        server: server.clone(),
        served: served.clone(),
        hub,
        filter: Filter {
            namespace,
            labels: options.labels,
            fields: options.fields,
        },
        form,
        bookmarks: options.bookmarks,
        announce: options.send_initial_events == Some(true),
        until: now.checked_add(timeout).unwrap_or(now),
        sender,
        columns: true,
    };
    let counted = Raised::new(&server.metrics.watchers);
    server.tasks.spawn(async move {
        watcher.run(start).await;
        drop(counted);
    });
    let content_type = form.content_type();
    Ok(respond::streamed(
        StatusCode::OK,
        content_type,
        receiver,
        false,
    ))
}

/// The log no longer reaches back to this revision.
fn too_old(revision: u64) -> Status {
    Status::expired(format!("too old resource version: {revision}"))
}

enum Start {
    /// With the present state.
    State,
    /// With what comes behind a revision.
    Behind(u64),
}

/// Why a watch ends.
enum End {
    /// The client has left, or the time is up.
    Done,
    /// The client is told why.
    Told(Status),
    /// A line could not be finished; the connection breaks off.
    Broken(Status),
}

struct Watcher {
    server: Arc<Server>,
    served: Arc<Served>,
    hub: Arc<Hub>,
    filter: Filter,
    form: Form,
    bookmarks: bool,
    announce: bool,
    until: Instant,
    sender: mpsc::Sender<Result<Bytes, BodyError>>,
    /// The next table carries its columns.
    columns: bool,
}

impl Watcher {
    async fn run(mut self, start: Start) {
        match self.follow(start).await {
            End::Done => {}
            End::Told(status) => {
                let line = format!(
                    "{}\n",
                    json!({"type": "ERROR", "object": status.to_value()})
                );
                let _ = self.sender.send(Ok(line.into())).await;
            }
            End::Broken(status) => {
                let _ = self.sender.send(Err(status.into())).await;
            }
        }
    }

    async fn follow(&mut self, start: Start) -> End {
        let mut cursor = match start {
            Start::Behind(revision) => revision,
            Start::State => match self.state().await {
                Ok(revision) => revision,
                Err(end) => return end,
            },
        };
        let mut head = self.hub.head();
        let mut bookmark_due = Instant::now() + BOOKMARK;
        loop {
            head.mark_unchanged();
            loop {
                let events = match self
                    .hub
                    .after(&*self.server.store, &self.served, cursor)
                    .await
                {
                    Ok(events) => events,
                    Err(StoreError::Compacted { .. }) => {
                        return End::Told(too_old(cursor));
                    }
                    Err(StoreError::Future { .. }) => break,
                    Err(error) => return End::Told(store_failure(error)),
                };
                let Some(last) = events.last().map(|seen| seen.event.revision) else {
                    break;
                };
                if let Err(end) = self.show(&events).await {
                    return end;
                }
                cursor = last;
            }
            let mut wake = self.until;
            if self.bookmarks {
                wake = wake.min(bookmark_due);
            }
            tokio::select! {
                () = self.server.stop.cancelled() => return End::Done,
                () = self.sender.closed() => return End::Done,
                changed = head.changed() => if changed.is_err() { return End::Done },
                () = tokio::time::sleep_until(wake) => {
                    let over = Instant::now() >= self.until;
                    if self.bookmarks && self.send(self.bookmark(cursor, false)).await.is_err() {
                        return End::Done;
                    }
                    bookmark_due = Instant::now() + BOOKMARK;
                    if over {
                        return End::Done;
                    }
                }
            }
        }
    }

    /// Sends the present state; returns its revision.
    async fn state(&mut self) -> Result<u64, End> {
        let mut query = ListQuery {
            resource: self.served.resource.clone(),
            namespace: self.filter.namespace.clone(),
            labels: self.filter.labels.clone(),
            fields: self.filter.fields.clone(),
            at: None,
            after: None,
            limit: 500,
        };
        loop {
            let store = self.server.store.clone();
            let page = store.list(query.clone()).await;
            let mut page = page.map_err(|error| End::Told(store_failure(error)))?;
            let mut rest = &mut page.items[..];
            while !rest.is_empty() {
                let ready = computed::complete(&*store, &self.served, self.form, rest).await;
                let ready = ready.map_err(|error| End::Told(store_failure(error)))?;
                let (portion, others) = rest.split_at_mut(ready.clamp(1, rest.len()));
                for stored in portion {
                    self.show_stored(stored).await?;
                    stored.body.quotes = Vec::new();
                }
                rest = others;
            }
            if !page.more {
                if self.announce {
                    self.send(self.bookmark(page.revision, true)).await?;
                }
                return Ok(page.revision);
            }
            query.at = Some(page.revision);
            query.after = page.items.last().map(|stored| stored.key.clone());
        }
    }

    async fn show_stored(&mut self, stored: &Stored) -> Result<(), End> {
        let line = hub::line(
            &*self.server.store,
            &self.served,
            self.form,
            EventType::Added,
            (stored.revision, &stored.body),
            std::mem::take(&mut self.columns),
        );
        match line.await.map_err(|lost| End::Told(lost.into()))? {
            Shown::Whole(line) => self.send(line).await,
            Shown::Large(opaque) => {
                let object = (stored.revision, &stored.body);
                self.send_large(EventType::Added, object, opaque).await
            }
        }
    }

    /// Sends a line that is too large for one piece.
    async fn send_large(
        &self,
        shown: EventType,
        object: (u64, &Body),
        mut opaque: Opaque,
    ) -> Result<(), End> {
        let start = BytesMut::from(hub::line_start(shown));
        let mut out = Outgoing::new(self.sender.clone(), start, false);
        let store = &*self.server.store;
        let sending = async {
            render::send(
                store,
                &self.served,
                self.form,
                object,
                &mut opaque,
                &mut out,
            )
            .await?;
            out.put(Bytes::from_static(hub::LINE_END.as_bytes()))
                .await?;
            out.finish().await
        };
        let sent = tokio::select! {
            sent = sending => sent,
            () = self.server.stop.cancelled() => Err(Halt::Gone),
        };
        sent.map_err(|halt| match halt {
            Halt::Gone => End::Done,
            Halt::Failed(status) => End::Broken(status),
        })
    }

    async fn show(&mut self, events: &[Arc<hub::Seen>]) -> Result<(), End> {
        let mut frame: Option<Bytes> = None;
        let mut joined = BytesMut::new();
        for seen in events {
            let Some(shown) = seen.for_watcher(&self.served, &self.filter) else {
                continue;
            };
            let table = matches!(self.form.view, View::Table(_));
            let columns = table && std::mem::take(&mut self.columns);
            let store = &*self.server.store;
            if seen.is_lost() {
                return Err(End::Told(too_old(seen.event.revision)));
            }
            let line = seen
                .line(store, &self.served, self.form, shown, columns)
                .await;
            let line = line.map_err(|lost| match lost {
                // The ring, or the log when it was read, reached farther back than what it
                // speaks of: to the client that is the same as a log that does not.
                Lost::Missing(_) => End::Told(too_old(seen.event.revision)),
                lost => End::Told(lost.into()),
            })?;
            let line = match line {
                Shown::Whole(line) => line,
                Shown::Large(opaque) => {
                    if let Some(first) = frame.take() {
                        self.send(first).await?;
                    }
                    if !joined.is_empty() {
                        self.send(joined.split().freeze()).await?;
                    }
                    let object = (seen.event.revision, seen.body(shown));
                    let sent = self.send_large(shown, object, opaque).await;
                    if matches!(sent, Err(End::Broken(_))) {
                        seen.lose();
                    }
                    sent?;
                    continue;
                }
            };
            // A single line leaves as the very bytes all watchers share.
            if let Some(first) = frame.take() {
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&line);
            } else if joined.is_empty() {
                frame = Some(line);
            } else {
                joined.extend_from_slice(&line);
            }
            if joined.len() >= FRAME {
                self.send(joined.split().freeze()).await?;
            }
        }
        match frame {
            Some(line) => self.send(line).await,
            None if joined.is_empty() => Ok(()),
            None => self.send(joined.freeze()).await,
        }
    }

    async fn send(&self, bytes: Bytes) -> Result<(), End> {
        tokio::select! {
            sent = self.sender.send(Ok(bytes)) => sent.map_err(|_| End::Done),
            () = self.server.stop.cancelled() => Err(End::Done),
        }
    }

    fn bookmark(&self, revision: u64, initial_end: bool) -> Bytes {
        let kind = &self.served.kind;
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object: Value = match self.form.view {
            View::Object => json!({
                "kind": kind.kind,
                "apiVersion": kind.api_version(&kind.versions[self.form.version]),
                "metadata": metadata,
            }),
            View::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            View::Table(version) => render::table(version, json!([]), Vec::new(), metadata),
        };
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }
}
