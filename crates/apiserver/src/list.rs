//! Lists: read in short transactions, pinned to one revision, streamed to the client chunk by
//! chunk, so that neither the database nor our memory holds a whole collection.

use crate::catalog::Served;
use crate::compress::{self, Packer};
use crate::computed;
use crate::failure::store_failure;
use crate::negotiate::View;
use crate::opaque::Opaque;
use crate::query::{ListOptions, Revision};
use crate::render::{self, Form};
use crate::respond::{Answer, Body, BodyError, answer};
use crate::server::Server;
use crate::store::{ListQuery, Page, Store, StoreError, Stored};
use crate::token::Token;
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use muster_kind::Status;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many objects one transaction reads.
const CHUNK: usize = 500;
/// A chunk goes out when it has grown to this.
const FLUSH: usize = 64 * 1024;

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
    let page = lister.page().await.map_err(|error| lister.failure(error))?;
    lister.revision = page.revision;
    lister.query.at = Some(page.revision);
    // What fits into one piece is one answer with its length; the rest is sent as it is made.
    let small = page.items.iter().all(|stored| stored.body.blobs.is_empty());
    let ends = !page.more || lister.left <= page.items.len();
    if small && ends {
        let mut opaque = lister.opaque(&page);
        for stored in &page.items {
            lister.item(stored, &mut opaque, &mut out).await?;
        }
        lister.shown(&page);
        lister.close(&mut out).await?;
        return Ok(answer(StatusCode::OK, form.content_type(), out.freeze()));
    }
    let (sender, receiver) = mpsc::channel::<Result<Bytes, BodyError>>(2);
    server.tasks.spawn(async move {
        let packer = gzip.then(Packer::default);
        if let Err(error) = lister.rest(page, out, packer, &sender).await {
            // The status line is out; all that is left is to break off, which every client sees.
            let _ = sender.send(Err(error.into())).await;
        }
    });
    let mut response = http::Response::new(channel_body(receiver));
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static(form.content_type()),
    );
    Ok(if gzip {
        compress::mark(response)
    } else {
        response
    })
}

/// A body fed by a task.
pub(crate) fn channel_body(receiver: mpsc::Receiver<Result<Bytes, BodyError>>) -> Body {
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let bytes = receiver.recv().await?;
        Some((bytes.map(Frame::data), receiver))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Reads a page, complete as the client will see it.
pub(crate) async fn read(
    store: &dyn Store,
    served: &Served,
    form: Form,
    query: ListQuery,
) -> Result<Page, StoreError> {
    let mut page = store.list(query).await?;
    computed::complete(store, served, form, &mut page.items).await?;
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

    /// The opaque bytes of a page.
    fn opaque(&self, page: &Page) -> Opaque {
        Opaque::new(page.items.iter().map(|stored| &stored.body))
    }

    /// Writes one item, with the comma before it.
    async fn item(
        &mut self,
        stored: &Stored,
        opaque: &mut Opaque,
        out: &mut BytesMut,
    ) -> Result<(), Status> {
        if !std::mem::take(&mut self.first) {
            out.put_u8(b',');
        }
        let (served, form) = (&self.served, self.form);
        match form.view {
            View::Object => {
                let blobs = opaque.next(&*self.server.store).await?;
                if served.kind.builtin {
                    render::bare(stored.revision, &stored.body, blobs, out);
                } else {
                    render::whole(served, form, stored.revision, &stored.body, blobs, out);
                }
            }
            View::Metadata => render::write_partial("v1", stored.revision, &stored.body, out),
            View::Table(_) => render::write_row(served, form, stored, out),
        }
        Ok(())
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

    /// Sends a page and those behind it. The next one is read while this one is written, so that
    /// the database and we work at once; no more than a piece waits to be sent.
    async fn rest(
        &mut self,
        mut page: Page,
        mut out: BytesMut,
        mut packer: Option<Packer>,
        sender: &mpsc::Sender<Result<Bytes, BodyError>>,
    ) -> Result<(), Status> {
        let mut pack = |piece: Bytes| match &mut packer {
            Some(packer) => packer.push(&piece),
            None => piece,
        };
        loop {
            let ahead = self.read_ahead(&page);
            let mut opaque = self.opaque(&page);
            for stored in &page.items {
                self.item(stored, &mut opaque, &mut out).await?;
                if out.len() >= FLUSH && sender.send(Ok(pack(out.split().freeze()))).await.is_err()
                {
                    return Ok(());
                }
            }
            self.shown(&page);
            let Some(ahead) = ahead else { break };
            let read = ahead.await.map_err(Status::internal)?;
            page = read.map_err(|error| self.failure(error))?;
        }
        self.close(&mut out).await?;
        let _ = sender.send(Ok(pack(out.freeze()))).await;
        if let Some(packer) = packer {
            let _ = sender.send(Ok(packer.finish())).await;
        }
        Ok(())
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
