//! The worker's loop over a real queue.

use crate::place::{Kind, LONG, Place, SUBJECT, settings};
use anyhow::Result;
use bytes::Bytes;
use muster_queue::{Backoff, Failure, Job, Queue, Settings, Worker, consume};
use muster_testkit::wait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

fn quick() -> Worker {
    Worker {
        concurrency: 4,
        heartbeat: Duration::from_millis(200),
        backoff: Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(50),
        },
        wait: Duration::from_millis(300),
        grace: LONG,
    }
}

type Seen = Arc<Mutex<HashMap<String, usize>>>;

fn note(seen: &Seen, job: &Job) {
    *seen
        .lock()
        .expect("a lock")
        .entry(job.id.clone())
        .or_default() += 1;
}

async fn idle(queue: &Arc<dyn Queue>) -> Result<()> {
    wait::until_async("the end of the work", LONG, || async {
        let depth = queue.depth(SUBJECT).await?;
        Ok((depth.waiting + depth.running == 0).then_some(()))
    })
    .await
}

pub async fn handlers_run_at_once_within_bounds_and_failures_are_their_own(
    kind: Kind,
) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    for number in 0..30 {
        queue
            .publish(SUBJECT, &format!("good/{number}"), Bytes::new())
            .await?;
    }
    for id in ["panic", "permanent", "transient", "recovers"] {
        queue.publish(SUBJECT, id, Bytes::new()).await?;
    }
    let (seen, now, most) = (
        Seen::default(),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let cancel = CancellationToken::new();
    let handler = {
        let (seen, now, most) = (seen.clone(), now.clone(), most.clone());
        move |job: Job| {
            let (seen, now, most) = (seen.clone(), now.clone(), most.clone());
            async move {
                note(&seen, &job);
                let running = now.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(running, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                let reason = format!("{} {}", job.id, job.attempt);
                match job.id.as_str() {
                    "panic" => panic!("on purpose"),
                    "permanent" => Err(Failure::Permanent { reason }),
                    "transient" => Err(Failure::Transient {
                        reason,
                        after: None,
                    }),
                    "recovers" if job.attempt < 2 => Err(Failure::Transient {
                        reason,
                        after: None,
                    }),
                    _ => Ok(()),
                }
            }
        }
    };
    let (worker, ended) = (queue.clone(), cancel.clone());
    let task = tokio::spawn(async move { consume(worker, SUBJECT, quick(), handler, ended).await });
    idle(&queue).await?;
    cancel.cancel();
    task.await?;
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.len(), 34);
    for (id, tries) in [
        ("panic", 3),
        ("permanent", 1),
        ("transient", 3),
        ("recovers", 2),
    ] {
        assert_eq!(seen[id], tries, "{id}");
    }
    assert!(most.load(Ordering::SeqCst) <= 4);
    let dead: HashMap<String, String> = queue
        .dead(SUBJECT, 10)
        .await?
        .into_iter()
        .map(|dead| (dead.id, dead.reason))
        .collect();
    assert_eq!(dead.len(), 3);
    assert_eq!(dead["permanent"], "permanent 1");
    assert_eq!(dead["transient"], "transient 3");
    assert_eq!(dead["panic"], "the handler panicked: on purpose");
    Ok(())
}

pub async fn a_long_handler_keeps_its_message(kind: Kind) -> Result<()> {
    let lease = Duration::from_secs(6);
    let (_place, queue) = Place::new(
        kind,
        Settings {
            lease,
            ..settings()
        },
    )
    .await?;
    queue.publish(SUBJECT, "long", Bytes::new()).await?;
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let handler = {
        let seen = seen.clone();
        move |job: Job| {
            let seen = seen.clone();
            async move {
                note(&seen, &job);
                tokio::time::sleep(lease * 2).await;
                Ok(())
            }
        }
    };
    let (worker, ended) = (queue.clone(), cancel.clone());
    let task = tokio::spawn(async move { consume(worker, SUBJECT, quick(), handler, ended).await });
    idle(&queue).await?;
    cancel.cancel();
    task.await?;
    assert_eq!(seen.lock().expect("a lock")["long"], 1);
    Ok(())
}

pub async fn the_end_waits_for_handlers_and_takes_nothing_more(kind: Kind) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let (seen, gate) = (seen.clone(), gate.clone());
        move |job: Job| {
            let (seen, gate) = (seen.clone(), gate.clone());
            async move {
                note(&seen, &job);
                gate.acquire()
                    .await
                    .map(drop)
                    .map_err(|_| Failure::Permanent {
                        reason: "closed".into(),
                    })
            }
        }
    };
    let (worker, ended) = (queue.clone(), cancel.clone());
    let task = tokio::spawn(async move { consume(worker, SUBJECT, quick(), handler, ended).await });
    for number in 0..10 {
        queue
            .publish(SUBJECT, &number.to_string(), Bytes::new())
            .await?;
    }
    let begun = || seen.lock().expect("a lock").len();
    wait::until_async("four handlers", LONG, || async {
        Ok((begun() == 4).then_some(()))
    })
    .await?;
    cancel.cancel();
    tokio::task::yield_now().await;
    assert!(!task.is_finished());
    gate.add_permits(10);
    task.await?;
    assert_eq!(begun(), 4, "nothing more was taken");
    let depth = queue.depth(SUBJECT).await?;
    assert_eq!(
        (depth.waiting, depth.running),
        (6, 0),
        "what was taken is finished"
    );
    Ok(())
}

/// Over NATS alone: with the file, the worker and the queue die together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_the_restart_of_its_server() -> Result<()> {
    let kind = Kind::Nats;
    let lease = Duration::from_secs(2);
    let (mut place, queue) = Place::new(
        kind,
        Settings {
            lease,
            tries: 20,
            ..settings()
        },
    )
    .await?;
    for number in 0..100 {
        queue
            .publish(SUBJECT, &format!("job/{number}"), Bytes::new())
            .await?;
    }
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let handler = {
        let seen = seen.clone();
        move |job: Job| {
            let seen = seen.clone();
            async move {
                note(&seen, &job);
                Ok(())
            }
        }
    };
    let (worker, ended) = (queue.clone(), cancel.clone());
    let task = tokio::spawn(async move { consume(worker, SUBJECT, quick(), handler, ended).await });
    wait::until_async("the first", LONG, || async {
        Ok((!seen.lock().expect("a lock").is_empty()).then_some(()))
    })
    .await?;
    let queue = place.restart(queue).await?;
    wait::until_async("all of them", LONG, || async {
        let depth = queue.depth(SUBJECT).await.ok();
        Ok(depth.filter(|depth| depth.waiting + depth.running == 0))
    })
    .await?;
    cancel.cancel();
    task.await?;
    assert_eq!(seen.lock().expect("a lock").len(), 100);
    assert!(queue.dead(SUBJECT, 10).await?.is_empty());
    Ok(())
}
