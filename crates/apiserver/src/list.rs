//! Lists: read in short transactions, pinned to one revision, streamed to the client chunk by
//! chunk, so that neither the database nor our memory holds a whole collection.

use crate::catalog::Served;
use crate::computed;
use crate::failure::store_failure;
use crate::negotiate::View;
use crate::opaque::Opaque;
use crate::outgoing::{Halt, Outgoing};
use crate::query::{ListOptions, Revision};
use crate::render::{self, Form};
use crate::respond::{Answer, BodyError, answer, streamed};
use crate::server::Server;
use crate::store::{ListQuery, Page, Store, StoreError, Stored};
use crate::token::Token;
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use muster_kind::Status;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many objects one transaction reads.
const CHUNK: usize = 500;

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The query of the first chunk, and how many objects may be shown in all.
pub(crate) async fn query(
    server: &Server,
    served: &Served,
    namespace: Option<String>,
    options: &ListOptions,
) -> Result<ListQuery, Status> {
    let mut query = ListQuery {
        resource: served.resource.clone(),
        namespace,
        labels: options.labels.clone(),
        fields: options.fields.clone(),
        at: None,
        after: None,
        limit: CHUNK,
    };
    if !options.continue_token.is_empty() {
        if !matches!(options.revision, Revision::Newest | Revision::Any) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let token = Token::decode(&options.continue_token)?;
        query.after = Some(token.key());
        query.at = (token.revision > 0).then_some(token.revision);
        return Ok(query);
    }
    match options.revision {
        Revision::Newest | Revision::Any => {}
        Revision::Exact(revision) => query.at = Some(revision),
        Revision::NotOlderThan(revision) => {
            let current = server
                .store
                .revision(&served.resource)
                .await
                .map_err(store_failure)?;
            if revision > current {
                return Err(Status::future_revision(revision, current));
            }
        }
    }
    Ok(query)
}

/// Answers a list.
pub(crate) async fn list(
    server: &Arc<Server>,
    served: &Arc<Served>,
    namespace: Option<String>,
    options: ListOptions,
    form: Form,
    gzip: bool,
) -> Result<Answer, Status> {
    let query = query(server, served, namespace, &options).await?;
    let mut lister = Lister {
        server: server.clone(),
        served: served.clone(),
        form,
        left: if options.limit == 0 {
            usize::MAX
        } else {
            options.limit
        },
        selective: !options.labels.is_empty() || !options.fields.is_empty(),
        continued: !options.continue_token.is_empty(),
        query,
        revision: 0,
        first: true,
        last: None,
    };
    let mut out = BytesMut::with_capacity(4096);
    lister.open(&mut out);
    let page = lister.page().await;
    let mut page = page.map_err(|error| lister.failure(error))?;
    lister.revision = page.revision;
    lister.query.at = Some(page.revision);
    // What fits into one piece is one answer with its length; the rest is sent as it is made.
    let ready = lister.complete(&mut page.items).await?;
    let is_whole = ready == page.items.len();
    let small = is_whole && page.items.iter().all(|stored| stored.body.is_plain());
    let ends = !page.more || lister.left <= page.items.len();
    if small && ends {
        for stored in &page.items {
            lister.write(stored, &mut out);
        }
        lister.shown(&page);
        lister.close(&mut out).await?;
        return Ok(answer(StatusCode::OK, form.content_type(), out.freeze()));
    }
    let (sender, receiver) = mpsc::channel::<Result<Bytes, BodyError>>(2);
    server.tasks.spawn(async move {
        let out = Outgoing::new(sender.clone(), out, gzip);
        if let Err(Halt::Failed(error)) = lister.rest(page, ready, out).await {
            // The status line is out; all that is left is to break off, which every client sees.
            let _ = sender.send(Err(error.into())).await;
        }
    });
    let content_type = form.content_type();
    Ok(streamed(StatusCode::OK, content_type, receiver, gzip))
}

/// Reads a page, complete as the client will see it unless it is completed in portions.
async fn read(
    store: &dyn Store,
    served: &Served,
    form: Form,
    query: ListQuery,
) -> Result<Page, StoreError> {
    let mut page = store.list(query).await?;
    if !computed::in_portions(served, form) {
        computed::complete(store, served, form, &mut page.items).await?;
    }
    Ok(page)
}

struct Lister {
    server: Arc<Server>,
    served: Arc<Served>,
    form: Form,
    query: ListQuery,
    left: usize,
    selective: bool,
    continued: bool,
    revision: u64,
    first: bool,
    /// The last object shown, if others follow that this page may not show.
    last: Option<crate::store::Key>,
}

impl Lister {
    async fn page(&self) -> Result<Page, StoreError> {
        let query = ListQuery {
            limit: CHUNK.min(self.left),
            ..self.query.clone()
        };
        read(&*self.server.store, &self.served, self.form, query).await
    }

    fn failure(&self, error: StoreError) -> Status {
        match error {
            StoreError::Compacted { .. } if self.continued => {
                let mut status = Status::expired(TOO_OLD);
                let key = self.query.after.clone().unwrap_or(crate::store::Key {
                    namespace: String::new(),
                    name: String::new(),
                });
                status.continue_token = Some(Token::new(0, &key).encode());
                status
            }
            StoreError::Compacted { .. } => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            StoreError::Future { asked, current } => {
                let mut status = Status::future_revision(asked, current);
                status.retry_after = None;
                status
            }
            error => store_failure(error),
        }
    }

    fn open(&self, out: &mut BytesMut) {
        let kind = &self.served.kind;
        let version = kind.api_version(&kind.versions[self.form.version]);
        let text = match self.form.view {
            View::Object => {
                format!("{{\"apiVersion\":\"{version}\",\"kind\":\"{}List\",\"items\":[", kind.kind)
            }
            View::Metadata => {
                "{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"PartialObjectMetadataList\",\"items\":["
                    .into()
            }
            View::Table(version) => format!(
                "{{\"apiVersion\":\"meta.k8s.io/{version}\",\"kind\":\"Table\",\"columnDefinitions\":{},\"rows\":[",
                render::columns(&self.served)
            ),
        };
        out.put_slice(text.as_bytes());
    }

    /// Notes that a page was shown.
    fn shown(&mut self, page: &Page) {
        self.left -= page.items.len().min(self.left);
        self.query.after = page.items.last().map(|stored| stored.key.clone());
        if page.more && self.left == 0 {
            self.last = self.query.after.clone();
        }
    }

    /// Completes the first of some items that a page left to be completed in portions; returns how many are
    /// complete.
    async fn complete(&self, items: &mut [Stored]) -> Result<usize, Status> {
        if items.is_empty() || !computed::in_portions(&self.served, self.form) {
            return Ok(items.len());
        }
        let completed = computed::complete(&*self.server.store, &self.served, self.form, items);
        let ready = completed.await.map_err(store_failure)?;
        Ok(ready.clamp(1, items.len()))
    }

    /// Writes one item without opaque fields, with the comma before it.
    fn write(&mut self, stored: &Stored, out: &mut BytesMut) {
        if !std::mem::take(&mut self.first) {
            out.put_u8(b',');
        }
        let (served, form) = (&self.served, self.form);
        let none = HashMap::new();
        match form.view {
            View::Object if served.kind.builtin => {
                render::bare(stored.revision, &stored.body, &none, out);
            }
            View::Object => {
                render::whole(served, form, stored.revision, &stored.body, &none, out);
            }
            View::Metadata => render::write_partial("v1", stored.revision, &stored.body, out),
            View::Table(_) => render::write_row(served, form, stored, out),
        }
    }

    /// Sends one item, with the comma before it.
    async fn item(
        &mut self,
        stored: &Stored,
        opaque: &mut Opaque,
        out: &mut Outgoing,
    ) -> Result<(), Halt> {
        if self.form.view != View::Object || stored.body.is_plain() {
            self.write(stored, out.gathered());
            return out.flush().await;
        }
        if !std::mem::take(&mut self.first) {
            out.gathered().put_u8(b',');
        }
        let store = &*self.server.store;
        let object = (stored.revision, &stored.body);
        render::send(store, &self.served, self.form, object, opaque, out).await
    }

    async fn close(&self, out: &mut BytesMut) -> Result<(), Status> {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        // Custom lists say so even if there is nothing more.
        if !self.served.kind.builtin && self.form.view == View::Object {
            metadata["continue"] = json!("");
        }
        if let Some(key) = &self.last {
            metadata["continue"] = Value::from(Token::new(self.revision, key).encode());
            if !self.selective {
                let namespace = self.query.namespace.as_deref();
                let count = self
                    .server
                    .store
                    .count(&self.served.resource, namespace, Some(key))
                    .await;
                metadata["remainingItemCount"] = json!(count.map_err(store_failure)?);
            }
        }
        out.put_slice(format!("],\"metadata\":{metadata}}}").as_bytes());
        Ok(())
    }

    /// Sends a page, the first items of which are complete, and those behind it. The next one is read while this
    /// one is written, so that the database and we work at once; no more than a piece waits to be sent.
    async fn rest(
        &mut self,
        mut page: Page,
        mut ready: usize,
        mut out: Outgoing,
    ) -> Result<(), Halt> {
        loop {
            let ahead = self.read_ahead(&page);
            let mut items = &mut page.items[..];
            while !items.is_empty() {
                let (portion, others) = items.split_at_mut(ready);
                let mut opaque = Opaque::new(portion.iter().map(|stored| &stored.body));
                for stored in portion {
                    self.item(stored, &mut opaque, &mut out).await?;
                    stored.body.quotes = Vec::new();
                }
                items = others;
                ready = self.complete(items).await?;
            }
            self.shown(&page);
            let Some(ahead) = ahead else { break };
            let read = ahead.await.map_err(Status::internal)?;
            page = read.map_err(|error| self.failure(error))?;
            ready = self.complete(&mut page.items).await?;
        }
        self.close(out.gathered()).await?;
        out.finish().await
    }

    /// Starts to read what follows a page, if it is to be shown.
    fn read_ahead(&self, page: &Page) -> Option<JoinHandle<Result<Page, StoreError>>> {
        let left = self.left.saturating_sub(page.items.len());
        if !page.more || left == 0 {
            return None;
        }
        let query = ListQuery {
            after: page.items.last().map(|stored| stored.key.clone()),
            limit: CHUNK.min(left),
            ..self.query.clone()
        };
        let (store, served, form) = (self.server.store.clone(), self.served.clone(), self.form);
        let reading = async move { read(&*store, &served, form, query).await };
        Some(self.server.tasks.spawn(reading))
    }
}
