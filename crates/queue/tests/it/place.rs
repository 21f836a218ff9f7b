//! Where a queue lives in a test, and how it is killed and opened again.

use anyhow::Result;
use muster_queue::{Delivery, EmbeddedQueue, NatsOptions, NatsQueue, Queue, Settings};
use muster_testkit::nats::Nats;
use muster_testkit::wait;
use std::sync::Arc;
use std::time::Duration;

pub const SUBJECT: &str = "sbomscanner.sbom.generate";
/// Long enough for a loaded machine.
pub const LONG: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Embedded,
    Nats,
}

pub struct Place {
    settings: Settings,
    inner: Inner,
}

enum Inner {
    Embedded(tempfile::TempDir),
    Nats(Box<Nats>),
}

impl Place {
    pub async fn new(kind: Kind, settings: Settings) -> Result<(Place, Arc<dyn Queue>)> {
        let inner = match kind {
            Kind::Embedded => Inner::Embedded(tempfile::tempdir()?),
            Kind::Nats => Inner::Nats(Box::new(Nats::start()?)),
        };
        let place = Place { settings, inner };
        let queue = place.open().await?;
        Ok((place, queue))
    }

    pub async fn open(&self) -> Result<Arc<dyn Queue>> {
        Ok(match &self.inner {
            Inner::Embedded(directory) => {
                let path = directory.path().join("queue.db");
                // One that was dropped a moment ago may still be letting go of the file.
                let opened = wait::until_async("the file", LONG, || async {
                    match EmbeddedQueue::open(&path, self.settings.clone()).await {
                        Err(error) if error.to_string().contains("in use") => Ok(None),
                        opened => Ok(Some(opened?)),
                    }
                })
                .await?;
                Arc::new(opened)
            }
            Inner::Nats(server) => {
                let options = NatsOptions::new(server.url());
                Arc::new(NatsQueue::connect(options, self.settings.clone()).await?)
            }
        })
    }

    /// The store dies with no chance to tidy up and comes back. The queue that stands before it
    /// lives on where it can, and is opened anew where it cannot.
    pub async fn restart(&mut self, queue: Arc<dyn Queue>) -> Result<Arc<dyn Queue>> {
        match &mut self.inner {
            Inner::Embedded(_) => {
                drop(queue);
                self.open().await
            }
            Inner::Nats(server) => {
                server.kill9()?;
                server.restart()?;
                Ok(queue)
            }
        }
    }
}

/// Settings whose leases are long, so that a slow machine loses nothing by accident.
pub fn settings() -> Settings {
    Settings {
        lease: LONG,
        tries: 3,
        window: LONG,
        largest: 1000,
        dead: 100,
    }
}

/// Pulls until something comes.
pub async fn next(queue: &Arc<dyn Queue>) -> Result<Delivery> {
    wait::until_async("a message", LONG, || async {
        // Trouble is not the end of it: a server may be starting again.
        let pulled = queue.pull(SUBJECT, 1, Duration::from_millis(500)).await;
        Ok(pulled.ok().and_then(|mut deliveries| deliveries.pop()))
    })
    .await
}

/// Whether nothing is there now.
pub async fn is_empty(queue: &Arc<dyn Queue>) -> Result<bool> {
    Ok(queue.pull(SUBJECT, 10, Duration::ZERO).await?.is_empty())
}
