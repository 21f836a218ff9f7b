//! One look of one person: everything is read with their client, within a time. What they may not list
//! everywhere is asked for namespace by namespace, and what is left out is remembered so that the page can
//! say so.

use crate::door::Visitor;
use crate::read::{self, Limits, ReadError, Resource, Row};
use crate::stock::Stock;
use crate::workload::Workload;
use futures::StreamExt;
use kube::Client;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long may be read for one page, once something can be shown.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many objects of a kind are looked at.
const MOST: usize = 50_000;
/// How many namespaces are tried one by one.
const NAMESPACES: usize = 500;
/// How many questions are open at a time.
const AT_ONCE: usize = 12;

/// Whoever looks.
pub(crate) struct Reader {
    pub(crate) client: Client,
    pub(crate) stock: Arc<Stock>,
    chosen: Option<String>,
    /// Where whoever looks is at home, if that is known of them.
    home: Option<String>,
    limits: Limits,
    namespaces: OnceCell<Vec<String>>,
}

/// What was not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Something may not be read.
    pub(crate) forbidden: bool,
    /// So many objects were not read: there was no time, or they could not be had.
    pub(crate) unread: usize,
    /// A list broke off.
    pub(crate) broke_off: bool,
}

impl LeftOut {
    /// What is left out where a list was not read to its end.
    fn listed(forbidden: bool, broke_off: bool) -> LeftOut {
        LeftOut {
            forbidden,
            unread: 0,
            broke_off,
        }
    }

    pub(crate) fn and(self, other: LeftOut) -> LeftOut {
        LeftOut {
            forbidden: self.forbidden || other.forbidden,
            unread: self.unread + other.unread,
            broke_off: self.broke_off || other.broke_off,
        }
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen<T> {
    pub(crate) items: Vec<T>,
    pub(crate) left_out: LeftOut,
}

/// Which objects of a kind are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Those of the namespace that was chosen, if one was.
    Chosen,
    /// All that may be read, whichever namespace was chosen.
    Anywhere,
    /// Those outside of namespaces; none if a namespace was chosen.
    Cluster,
}

impl Reader {
    pub(crate) fn new(visitor: Visitor, stock: Arc<Stock>, chosen: Option<String>) -> Self {
        Reader {
            home: visitor.home().map(str::to_owned),
            client: visitor.client,
            stock,
            chosen,
            limits: Limits {
                most: MOST,
                until: Some(Instant::now() + PATIENCE),
            },
            namespaces: OnceCell::new(),
        }
    }

    pub(crate) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The namespaces that are known; none if their list may not be read.
    pub(crate) async fn namespaces(&self) -> Result<&[String], ReadError> {
        let read = || async {
            let mut names = Vec::new();
            let resource = Resource {
                group: "",
                version: "v1",
                plural: "namespaces",
            };
            let see = |row: Row| names.push(row.name);
            match read::rows(&self.client, resource, None, self.limits, see).await {
                Ok(_) => Ok(names),
                Err(error) if matches!(error.code(), Some(403 | 404)) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        };
        self.namespaces
            .get_or_try_init(read)
            .await
            .map(Vec::as_slice)
    }

    /// Where objects of a kind may be read: in all namespaces at once, or in these.
    async fn places(
        &self,
        resource: Resource,
        which: Where,
    ) -> Result<(Vec<Option<String>>, bool), ReadError> {
        let chosen = match (which, &self.chosen) {
            (Where::Cluster, Some(_)) => return Ok((Vec::new(), false)),
            (Where::Chosen, Some(chosen)) => Some(chosen.clone()),
            _ => None,
        };
        let is_chosen = chosen.is_some();
        match may_list(self.client.clone(), resource, chosen.clone()).await? {
            Answer::Yes => return Ok((vec![chosen], false)),
            Answer::Unknown => return Ok((Vec::new(), false)),
            Answer::No if is_chosen || which == Where::Cluster => return Ok((Vec::new(), true)),
            Answer::No => {}
        }
        // Where somebody is at home, they most likely may read.
        let mut tried: Vec<String> = self.home.iter().cloned().collect();
        let known = self.namespaces().await?.iter().take(NAMESPACES);
        tried.extend(
            known
                .filter(|name| Some(*name) != self.home.as_ref())
                .cloned(),
        );
        let client = self.client.clone();
        let tries = tried.into_iter().map(move |namespace| {
            let client = client.clone();
            async move {
                let answer = may_list(client, resource, Some(namespace.clone())).await;
                answer.map(|answer| (namespace, answer))
            }
        });
        let mut answers = futures::stream::iter(tries).buffered(AT_ONCE);
        let mut places = Vec::new();
        while let Some(answer) = answers.next().await {
            if let (namespace, Answer::Yes) = answer? {
                places.push(Some(namespace));
            }
        }
        Ok((places, true))
    }

    /// The rows of a kind.
    pub(crate) async fn rows(
        &self,
        resource: Resource,
        which: Where,
    ) -> Result<Seen<Row>, ReadError> {
        let (places, forbidden) = self.places(resource, which).await?;
        let mut items = Vec::new();
        let mut broke_off = false;
        for place in places {
            let see = |row| items.push(row);
            let place = place.as_deref();
            let all = read::rows(&self.client, resource, place, self.limits, see).await;
            broke_off |= !whole(all)?;
        }
        Ok(Seen {
            items,
            left_out: LeftOut::listed(forbidden, broke_off),
        })
    }

    /// Whole objects of a kind that has small ones.
    pub(crate) async fn objects<T: DeserializeOwned>(
        &self,
        resource: Resource,
        which: Where,
    ) -> Result<Seen<T>, ReadError> {
        self.selected(resource, which, "").await
    }

    /// Those of them that have these labels.
    pub(crate) async fn selected<T: DeserializeOwned>(
        &self,
        resource: Resource,
        which: Where,
        labels: &str,
    ) -> Result<Seen<T>, ReadError> {
        let (places, forbidden) = self.places(resource, which).await?;
        let mut items = Vec::new();
        let mut broke_off = false;
        for place in places {
            let see = |object| items.push(object);
            let place = place.as_deref();
            let all = read::objects(&self.client, resource, place, labels, self.limits, see).await;
            broke_off |= !whole(all)?;
        }
        Ok(Seen {
            items,
            left_out: LeftOut::listed(forbidden, broke_off),
        })
    }

    /// The workloads, without their findings.
    pub(crate) async fn workloads(&self, which: Where) -> Result<Seen<Workload>, ReadError> {
        let (places, forbidden) = self.places(read::WORKLOADS, which).await?;
        let mut items = Vec::new();
        let mut broke_off = false;
        for place in places {
            let see = |workload| items.push(workload);
            let all = read::workloads(&self.client, place.as_deref(), self.limits, see).await;
            broke_off |= !whole(all)?;
        }
        Ok(Seen {
            items,
            left_out: LeftOut::listed(forbidden, broke_off),
        })
    }

    /// Reads objects one by one, as many as there is time for; what was not read is none, and one that
    /// cannot be had costs no other.
    pub(crate) async fn each<T: DeserializeOwned + Send + 'static>(
        &self,
        resource: Resource,
        places: Vec<(String, String)>,
        mut see: impl FnMut(usize, Option<T>),
    ) -> Result<(), ReadError> {
        let (client, limits) = (self.client.clone(), self.limits);
        let reads = places
            .into_iter()
            .enumerate()
            .map(move |(at, (namespace, name))| {
                let client = client.clone();
                async move {
                    if limits.is_over() {
                        return Ok((at, None));
                    }
                    let namespace =
                        Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
                    match read::get(&client, resource, namespace, &name).await {
                        Ok(object) => Ok((at, object)),
                        // Whose token is no good any more gets nothing at all.
                        Err(error) if error.code() == Some(401) => Err(error),
                        Err(error) => {
                            tracing::debug!(%error, name, "an object of a page");
                            Ok((at, None))
                        }
                    }
                }
            });
        let mut reads = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
        while let Some(read) = reads.next().await {
            let (at, object) = read?;
            see(at, object);
        }
        Ok(())
    }
}

enum Answer {
    Yes,
    No,
    /// Nobody serves the kind.
    Unknown,
}

/// Whether a kind may be listed: the answer of trying it.
async fn may_list(
    client: Client,
    resource: Resource,
    namespace: Option<String>,
) -> Result<Answer, ReadError> {
    match read::first(&client, resource, namespace.as_deref()).await {
        Ok(()) => Ok(Answer::Yes),
        Err(error) => match error.code() {
            Some(403) => Ok(Answer::No),
            Some(404) => Ok(Answer::Unknown),
            _ => Err(error),
        },
    }
}

/// What changed too much while it was read is not all there, and no failure.
fn whole(read: Result<bool, ReadError>) -> Result<bool, ReadError> {
    match read {
        Err(error) if matches!(error.code(), Some(403 | 404 | 410)) => Ok(false),
        read => read,
    }
}
