//! What pages need of large objects, read once and shared: what is on a shelf is taken from there, the rest
//! is read while there is time for it. What there is no time for is read on behind the look, by one task at
//! a time and with the rights of whoever looked, so that the next look finds it.

use crate::read::{self, ReadError, Resource, Row};
use crate::reader::{LeftOut, Reader, Seen};
use crate::shelf::{Shelf, Weighed};
use crate::stock::Stock;
use futures::StreamExt;
use kube::Client;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How many objects are read at a time behind a look; those who look go first.
const BEHIND: usize = 4;
/// For how long is read on after a look.
const LONGEST: Duration = Duration::from_secs(300);

/// How something is distilled: read as `W`, kept as `T`.
pub(crate) struct Still<W, T> {
    pub(crate) resource: Resource,
    pub(crate) shelf: fn(&Stock) -> &Shelf<T>,
    pub(crate) distil: fn(W, &Stock) -> T,
}

impl<W, T> Clone for Still<W, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, T> Copy for Still<W, T> {}

impl<W, T> Still<W, T>
where
    W: DeserializeOwned + Send + 'static,
    T: Weighed + Send + Sync + 'static,
{
    /// What is known of these rows, and the rows of which nothing is.
    pub(crate) fn known(&self, stock: &Stock, rows: Vec<Row>) -> (Vec<Arc<T>>, Vec<Row>) {
        let (mut known, mut missing) = (Vec::new(), Vec::new());
        for row in rows {
            match (self.shelf)(stock).find(&row.uid, &row.revision) {
                Some(one) => known.push(one),
                None => missing.push(row),
            }
        }
        (known, missing)
    }

    /// Reads what these rows are about, while there is time for it.
    pub(crate) async fn read(
        &self,
        reader: &Reader,
        rows: Vec<Row>,
    ) -> Result<Seen<Arc<T>>, ReadError> {
        let mut items = Vec::new();
        let places: Vec<_> = rows.iter().map(Row::place).collect();
        let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
        let see = |at: usize, read: Option<W>| {
            let (Some(row), Some(read)) = (rows.get_mut(at), read) else {
                return;
            };
            if let Some(row) = row.take() {
                items.push(self.keep(&reader.stock, &row, read));
            }
        };
        reader.each(self.resource, places, see).await?;
        let unread: Vec<Row> = rows.into_iter().flatten().collect();
        let left_out = LeftOut {
            unread: unread.len(),
            ..LeftOut::default()
        };
        self.read_behind(reader, unread);
        Ok(Seen { items, left_out })
    }

    /// Has these rows read behind the look.
    pub(crate) fn read_behind(&self, reader: &Reader, rows: Vec<Row>) {
        if !rows.is_empty() {
            let (client, stock) = (reader.client.clone(), Arc::downgrade(&reader.stock));
            let work = self.read_on(client, stock, rows);
            reader.stock.behind.begin(work);
        }
    }

    fn keep(&self, stock: &Stock, row: &Row, read: W) -> Arc<T> {
        let kept = Arc::new((self.distil)(read, stock));
        (self.shelf)(stock).keep(&row.uid, &row.revision, kept.clone());
        kept
    }

    async fn read_on(self, client: Client, stock: Weak<Stock>, rows: Vec<Row>) {
        let resource = self.resource;
        let reads = rows.into_iter().map(move |row| {
            let client = client.clone();
            async move {
                let (namespace, name) = row.place();
                let namespace = Some(namespace.as_str()).filter(|text| !text.is_empty());
                let read = read::get(&client, resource, namespace, &name).await;
                (row, read.ok().flatten())
            }
        });
        let mut reads = futures::stream::iter(reads).buffer_unordered(BEHIND);
        while let Some((row, read)) = reads.next().await {
            let Some(stock) = stock.upgrade() else {
                return;
            };
            if let Some(read) = read {
                self.keep(&stock, &row, read);
            }
        }
    }
}

/// The one who reads on; ends when dropped.
#[derive(Default)]
pub(crate) struct Behind {
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Behind {
    /// Has this done, unless something is being done already.
    fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(async {
                // What is not read by then is a later look's.
                let _ = timeout(LONGEST, work).await;
            }));
        }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use crate::door::Visitor;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::convert::Infallible;

    const STILL: Still<Value, Audit> = Still {
        resource: read::FINDINGS,
        shelf: |stock| &stock.audits,
        distil: |read, _| Audit {
            name: read["name"].as_str().unwrap_or_default().into(),
            ..Audit::default()
        },
    };

    /// Somebody whose server answers with the path that was asked for.
    fn visitor() -> Visitor {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let body = json!({"name": request.uri().path()}).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes())))
        });
        Visitor {
            name: "jane".into(),
            client: Client::new(service, "default"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_no_time_for_is_there_at_a_later_look() {
        let stock = Arc::new(Stock::default());
        let rows = || vec![Row::bare("shop", "a", "u1"), Row::bare("", "b", "u2")];
        let late = Reader::new(visitor(), stock.clone(), None);
        tokio::time::advance(Duration::from_secs(5)).await;
        let seen = STILL.read(&late, rows()).await.unwrap();
        assert_eq!((seen.items.len(), seen.left_out.unread), (0, 2));
        let mut known = Vec::new();
        for _ in 0..1000 {
            tokio::task::yield_now().await;
            known = STILL.known(&stock, rows()).0;
            if known.len() == 2 {
                break;
            }
        }
        let names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
        let all = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1";
        let expected = [
            format!("{all}/namespaces/shop/vulnerabilityreports/a"),
            format!("{all}/vulnerabilityreports/b"),
        ];
        assert_eq!(names, expected);
    }

    #[tokio::test]
    async fn what_is_read_in_time_is_shared() {
        let stock = Arc::new(Stock::default());
        let reader = Reader::new(visitor(), stock.clone(), None);
        let row = || vec![Row::bare("shop", "a", "u1")];
        let seen = STILL.read(&reader, row()).await.unwrap();
        assert_eq!((seen.items.len(), seen.left_out.unread), (1, 0));
        let (known, missing) = STILL.known(&stock, row());
        assert_eq!((known.len(), missing.len()), (1, 0));
        assert!(Arc::ptr_eq(&known[0], &seen.items[0]));
    }
}
