//! How many messages each queue takes in, hands out and is told the end of, in a second.

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use muster_queue::{EmbeddedQueue, NatsOptions, NatsQueue, Queue, Settings, Worker, consume};
use muster_testkit::nats::Nats;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const MESSAGES: usize = 10_000;
const PUBLISHERS: usize = 32;
const WORKERS: usize = 16;
const SUBJECT: &str = "bench.work";

pub(super) async fn run() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("queue.db");
    let embedded = EmbeddedQueue::open(&file, Settings::default()).await?;
    measure("embedded", Arc::new(embedded)).await?;
    let server = Nats::start()?;
    let options = NatsOptions::new(server.url());
    let nats = NatsQueue::connect(options, Settings::default()).await?;
    measure("NATS JetStream", Arc::new(nats)).await
}

async fn measure(name: &str, queue: Arc<dyn Queue>) -> Result<()> {
    let start = Instant::now();
    let published = stream::iter(0..MESSAGES).map(|number| {
        let queue = queue.clone();
        async move {
            let payload = Bytes::from_static(&[b'x'; 256]);
            queue.publish(SUBJECT, &number.to_string(), payload).await
        }
    });
    let published = published.buffer_unordered(PUBLISHERS);
    published.try_for_each(async |_| Ok(())).await?;
    let taken_in = start.elapsed();

    let (stop, done) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let worker = Worker {
        concurrency: WORKERS,
        wait: Duration::from_millis(100),
        ..Worker::default()
    };
    let start = Instant::now();
    let end = stop.clone();
    let handler = move |_| {
        let (done, end) = (done.clone(), end.clone());
        async move {
            if done.fetch_add(1, Ordering::Relaxed) + 1 == MESSAGES {
                end.cancel();
            }
            Ok(())
        }
    };
    consume(queue, SUBJECT, worker, handler, stop).await;
    let handed_out = start.elapsed();
    let rate = |took: Duration| MESSAGES as f64 / took.as_secs_f64();
    eprintln!(
        "| {name:16} | {:8.0} | {:8.0} |",
        rate(taken_in),
        rate(handed_out)
    );
    Ok(())
}
