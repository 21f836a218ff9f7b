//! The behaviour of a queue.

use crate::place::{Kind, LONG, Place, SUBJECT, is_empty, next, settings};
use anyhow::Result;
use bytes::Bytes;
use muster_queue::{Depth, Published, QueueError, Settings};
use muster_testkit::wait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub async fn what_is_published_is_pulled_and_gone_when_it_is_acknowledged(
    kind: Kind,
) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    assert!(is_empty(&queue).await?);
    assert_eq!(
        queue.publish(SUBJECT, "job/1", Bytes::from("work")).await?,
        Published::Accepted
    );
    assert_eq!(
        queue.depth(SUBJECT).await?,
        Depth {
            waiting: 1,
            running: 0,
            dead: 0
        }
    );
    assert!(
        queue
            .pull("another.subject", 10, Duration::ZERO)
            .await?
            .is_empty()
    );
    let delivery = next(&queue).await?;
    assert_eq!(
        (delivery.id.as_str(), delivery.subject.as_str()),
        ("job/1", SUBJECT)
    );
    assert_eq!(delivery.payload, Bytes::from("work"));
    assert_eq!((delivery.attempt, delivery.last), (1, false));
    assert!(is_empty(&queue).await?, "one worker at a time has it");
    assert_eq!(
        queue.depth(SUBJECT).await?,
        Depth {
            waiting: 0,
            running: 1,
            dead: 0
        }
    );
    queue.ack(&delivery).await?;
    assert!(is_empty(&queue).await?);
    assert_eq!(queue.depth(SUBJECT).await?, Depth::default());
    assert!(queue.dead(SUBJECT, 10).await?.is_empty());
    Ok(())
}

pub async fn an_id_is_taken_once_while_it_is_pending_and_within_the_window(
    kind: Kind,
) -> Result<()> {
    let window = Duration::from_secs(8);
    let (_place, queue) = Place::new(
        kind,
        Settings {
            window,
            ..settings()
        },
    )
    .await?;
    let publish =
        |subject: &'static str, id: &'static str| queue.publish(subject, id, Bytes::from(id));
    let start = Instant::now();
    assert_eq!(publish(SUBJECT, "pending").await?, Published::Accepted);
    assert_eq!(publish(SUBJECT, "running").await?, Published::Accepted);
    assert_eq!(
        publish("other.subject", "pending").await?,
        Published::Accepted
    );
    let mut taken = Vec::new();
    while taken.len() < 2 {
        taken.push(next(&queue).await?);
    }
    let running = taken
        .iter()
        .find(|delivery| delivery.id == "running")
        .expect("taken");
    let pending = taken
        .iter()
        .find(|delivery| delivery.id == "pending")
        .expect("taken");
    queue.nak(pending, LONG, "later").await?;
    // Well past the window neither is taken again, because neither is finished.
    wait::until_async("the end of the window", LONG, || async {
        Ok((start.elapsed() > window * 2).then_some(()))
    })
    .await?;
    for id in ["pending", "running"] {
        assert_eq!(publish(SUBJECT, id).await?, Published::Duplicate, "{id}");
    }
    queue.ack(running).await?;
    assert_eq!(
        publish(SUBJECT, "running").await?,
        Published::Accepted,
        "its window is over"
    );
    let again = next(&queue).await?;
    assert_eq!(again.id, "running");
    queue.ack(&again).await?;
    assert_eq!(
        publish(SUBJECT, "running").await?,
        Published::Duplicate,
        "its window has begun anew"
    );
    wait::until_async("the end of the window", LONG, || async {
        Ok((publish(SUBJECT, "running").await? == Published::Accepted).then_some(()))
    })
    .await
}

pub async fn a_message_of_a_lost_worker_comes_again_and_a_heartbeat_keeps_it(
    kind: Kind,
) -> Result<()> {
    let lease = Duration::from_secs(6);
    let (_place, queue) = Place::new(
        kind,
        Settings {
            lease,
            ..settings()
        },
    )
    .await?;
    queue.publish(SUBJECT, "lost", Bytes::new()).await?;
    let lost = next(&queue).await?;
    let taken = Instant::now();
    let again = next(&queue).await?;
    assert!(taken.elapsed() >= lease / 2, "not while the lease lasts");
    assert_eq!((again.id.as_str(), again.attempt), ("lost", 2));
    // The first worker was only slow. What it says now is refused or counts; it breaks nothing.
    match queue.progress(&lost).await {
        Ok(()) | Err(QueueError::Lost { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let start = Instant::now();
    while start.elapsed() < lease * 2 {
        queue.progress(&again).await?;
        let other = queue.pull(SUBJECT, 1, lease / 8).await?;
        assert!(other.is_empty(), "{other:?}");
    }
    queue.ack(&again).await?;
    assert!(is_empty(&queue).await?);
    Ok(())
}

pub async fn a_delay_is_kept(kind: Kind) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    queue.publish(SUBJECT, "later", Bytes::new()).await?;
    let first = next(&queue).await?;
    let delay = Duration::from_secs(1);
    let start = Instant::now();
    queue.nak(&first, delay, "busy").await?;
    let second = next(&queue).await?;
    assert!(
        start.elapsed() >= delay.mul_f64(0.9),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(second.attempt, 2);
    queue.nak(&second, Duration::ZERO, "busy").await?;
    let third = next(&queue).await?;
    assert!(third.last);
    queue.ack(&third).await?;
    Ok(())
}

pub async fn what_is_terminated_or_used_up_is_laid_aside_with_the_reason(kind: Kind) -> Result<()> {
    let lease = Duration::from_secs(3);
    let (_place, queue) = Place::new(
        kind,
        Settings {
            lease,
            ..settings()
        },
    )
    .await?;
    // Its workers say nothing at all.
    queue.publish(SUBJECT, "silent", Bytes::from("s")).await?;
    let dead = wait::until_async("its death", LONG, || async {
        let pulled = queue.pull(SUBJECT, 1, lease).await?;
        assert!(pulled.iter().all(|delivery| delivery.attempt <= 3));
        let dead = queue.dead(SUBJECT, 10).await?;
        Ok((!dead.is_empty()).then_some(dead))
    })
    .await?;
    assert_eq!((dead[0].id.as_str(), dead[0].tries), ("silent", 3));
    assert!(
        dead[0].reason.contains("not finished in 3 tries"),
        "{}",
        dead[0].reason
    );
    assert_eq!(dead[0].payload, Bytes::from("s"));

    queue.publish(SUBJECT, "hopeless", Bytes::from("h")).await?;
    let delivery = next(&queue).await?;
    queue.term(&delivery, "no such image\nat all").await?;
    queue.publish(SUBJECT, "failing", Bytes::from("f")).await?;
    loop {
        let delivery = next(&queue).await?;
        let reason = format!("failure {}", delivery.attempt);
        queue.nak(&delivery, Duration::ZERO, &reason).await?;
        if delivery.last {
            break;
        }
    }
    assert!(is_empty(&queue).await?);
    let dead: HashMap<String, String> = queue
        .dead(SUBJECT, 10)
        .await?
        .into_iter()
        .map(|dead| (dead.id, dead.reason))
        .collect();
    assert_eq!(dead.len(), 3);
    assert_eq!(dead["hopeless"], "no such image at all");
    assert_eq!(dead["failing"], "failure 3");
    assert_eq!(queue.dead(SUBJECT, 2).await?.len(), 2);
    assert!(queue.dead("other.subject", 10).await?.is_empty());
    let depth = queue.depth(SUBJECT).await?;
    assert_eq!((depth.waiting, depth.running, depth.dead), (0, 0, 3));
    assert_eq!(queue.depth("other.subject").await?, Depth::default());
    Ok(())
}

pub async fn who_waits_is_woken(kind: Kind) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move {
            let start = Instant::now();
            let pulled = queue.pull(SUBJECT, 1, LONG).await;
            (pulled, start.elapsed())
        }
    });
    // Whether it waits already or not, it must come back with the message.
    tokio::task::yield_now().await;
    queue.publish(SUBJECT, "news", Bytes::new()).await?;
    let (pulled, time) = waiting.await?;
    assert_eq!(pulled?.len(), 1);
    assert!(time < LONG / 2, "{time:?}");
    Ok(())
}

pub async fn thousands_of_messages_are_each_handled_by_many_workers(kind: Kind) -> Result<()> {
    const COUNT: usize = 3000;
    let (_place, queue) = Place::new(kind, settings()).await?;
    let publishers = (0..20).map(|part| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for number in (part..COUNT).step_by(20) {
                let id = format!("job/{number}");
                queue.publish(SUBJECT, &id, Bytes::from(id.clone())).await?;
            }
            anyhow::Ok(())
        })
    });
    let seen: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let workers = (0..8).map(|_| {
        let (queue, seen) = (queue.clone(), seen.clone());
        tokio::spawn(async move {
            while seen.lock().expect("a lock").len() < COUNT {
                for delivery in queue.pull(SUBJECT, 50, Duration::from_millis(200)).await? {
                    assert_eq!(delivery.payload, Bytes::from(delivery.id.clone()));
                    *seen
                        .lock()
                        .expect("a lock")
                        .entry(delivery.id.clone())
                        .or_default() += 1;
                    queue.ack(&delivery).await?;
                }
            }
            anyhow::Ok(())
        })
    });
    let tasks: Vec<_> = publishers.chain(workers).collect();
    for task in tasks {
        task.await??;
    }
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.len(), COUNT);
    assert!(
        seen.values().all(|count| *count == 1),
        "with long leases nothing comes twice"
    );
    assert_eq!(queue.depth(SUBJECT).await?, Depth::default());
    Ok(())
}

pub async fn a_restart_loses_nothing(kind: Kind) -> Result<()> {
    let lease = Duration::from_secs(3);
    let (mut place, queue) = Place::new(
        kind,
        Settings {
            lease,
            ..settings()
        },
    )
    .await?;
    for number in 0..50 {
        queue
            .publish(SUBJECT, &format!("job/{number}"), Bytes::from("x"))
            .await?;
    }
    let done = next(&queue).await?;
    queue.ack(&done).await?;
    let dead = next(&queue).await?;
    queue.term(&dead, "hopeless").await?;
    let held = next(&queue).await?;
    let queue = place.restart(queue).await?;
    let mut left = HashMap::new();
    let unfinished = |left: &HashMap<String, u32>| {
        let finished = [&done.id, &dead.id]
            .iter()
            .filter(|id| left.contains_key(**id))
            .count();
        left.len() - finished
    };
    while unfinished(&left) < 48 {
        let delivery = next(&queue).await?;
        // A server that has just come back may need a moment.
        wait::until_async("the acknowledgement", LONG, || async {
            Ok(queue.ack(&delivery).await.ok())
        })
        .await?;
        left.insert(delivery.id.clone(), delivery.attempt);
    }
    if kind == Kind::Embedded {
        // A NATS server that is killed may forget what it heard last, and gives it out again.
        assert_eq!(unfinished(&left), left.len(), "what is finished stays so");
        assert_eq!(left.get(&held.id), Some(&2), "whoever had it is gone");
        assert!(is_empty(&queue).await?);
    }
    assert_eq!(queue.dead(SUBJECT, 10).await?.len(), 1);
    Ok(())
}

pub async fn what_cannot_be_kept_is_refused_by_name(kind: Kind) -> Result<()> {
    let (_place, queue) = Place::new(kind, settings()).await?;
    let error = queue
        .publish(SUBJECT, "big", Bytes::from(vec![0; 1001]))
        .await
        .expect_err("too large");
    assert!(
        matches!(
            error,
            QueueError::TooLarge {
                size: 1001,
                limit: 1000,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("big") && !error.is_transient(),
        "{error}"
    );
    assert_eq!(
        queue
            .publish(SUBJECT, "fits", Bytes::from(vec![0; 1000]))
            .await?,
        Published::Accepted
    );
    for (subject, id) in [
        ("a.*", "x"),
        ("", "x"),
        ("a b", "x"),
        (SUBJECT, ""),
        (SUBJECT, "a\nb"),
    ] {
        let error = queue
            .publish(subject, id, Bytes::new())
            .await
            .expect_err("refused");
        assert!(matches!(error, QueueError::Malformed { .. }), "{error}");
    }
    assert!(queue.pull("a.>", 1, Duration::ZERO).await.is_err());
    Ok(())
}
