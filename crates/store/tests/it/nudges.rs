//! Replicas that nudge each other over a real NATS server: news comes at once while it is there,
//! and comes all the same while it is not.

use crate::postgres::{options, server, wait_for};
use crate::suite::*;
use muster_apiserver::store::Store;
use muster_queue::NatsOptions;
use muster_store::PostgresStore;
use muster_testkit::nats::Nats;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Longer than any test: who waits for it has heard nothing.
const NEVER: Duration = Duration::from_secs(24 * 3600);
const OFTEN: Duration = Duration::from_millis(50);
/// How long anything may take on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

struct Replica {
    store: Arc<PostgresStore>,
    /// A nudge counts only while somebody follows.
    hint: tokio::sync::watch::Receiver<u64>,
    /// The resource and revision of every nudge that it got.
    heard: Arc<Mutex<HashSet<(String, u64)>>>,
    stop: CancellationToken,
    talking: tokio::task::JoinHandle<()>,
}

impl Replica {
    async fn start(database: &str, nats: &Nats, poll: Duration) -> Replica {
        let mut options = options(server(), database);
        options.poll = poll;
        let store = Arc::new(PostgresStore::open(options).await.unwrap());
        let stop = CancellationToken::new();
        let hearer = store.clone();
        let heard: Arc<Mutex<HashSet<(String, u64)>>> = Arc::default();
        let ear = heard.clone();
        let talking = tokio::spawn(muster_queue::nudge(
            NatsOptions::new(nats.url()),
            store.written(),
            move |resource, revision| {
                hearer.nudge(resource, revision);
                ear.lock().unwrap().insert((resource.to_string(), revision));
            },
            stop.clone(),
        ));
        Replica {
            hint: store.hint(&things()),
            store,
            heard,
            stop,
            talking,
        }
    }

    async fn write(&self, name: &str) -> u64 {
        let store: Shared = self.store.clone();
        Thing::new("a", name).create(&store).await
    }

    /// Whether it hears within the time that the things have come this far.
    async fn sees(&self, revision: u64, limit: Duration) -> bool {
        let mut hint = self.hint.clone();
        let seen = hint.wait_for(|known| *known >= revision);
        tokio::time::timeout(limit, seen).await.is_ok()
    }

    /// Writes until the other hears of it: nudges are lost until both are connected.
    async fn reaches(&self, other: &Replica, word: &str) {
        let start = Instant::now();
        for number in 0.. {
            let revision = self.write(&format!("{word}-{number}")).await;
            if other.sees(revision, Duration::from_millis(500)).await {
                return;
            }
            assert!(start.elapsed() < LONG, "no nudge comes through: {word}");
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.talking.await.unwrap();
        self.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_hear_of_each_others_writes_at_once() {
    let nats = Nats::start().unwrap();
    let database = server().database().unwrap();
    let one = Replica::start(&database, &nats, NEVER).await;
    let two = Replica::start(&database, &nats, NEVER).await;
    one.reaches(&two, "one").await;
    two.reaches(&one, "two").await;
    for number in 0..20 {
        let (writer, reader) = match number % 2 {
            0 => (&one, &two),
            _ => (&two, &one),
        };
        let revision = writer.write(&format!("x{number}")).await;
        assert!(reader.sees(revision, LONG).await, "write {number}");
    }
    one.end().await;
    two.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_nats_writes_are_seen_all_the_same_and_nudges_come_back_with_it() {
    let mut nats = Nats::start().unwrap();
    let database = server().database().unwrap();
    let writer = Replica::start(&database, &nats, OFTEN).await;
    let looking = Replica::start(&database, &nats, OFTEN).await;
    let waiting = Replica::start(&database, &nats, NEVER).await;
    writer.reaches(&waiting, "first").await;

    nats.kill9().unwrap();
    let revision = writer.write("unheard").await;
    assert!(looking.sees(revision, LONG).await, "the poll goes on");
    assert!(!waiting.sees(revision, OFTEN).await, "nobody nudged it");

    nats.restart().unwrap();
    writer.reaches(&waiting, "again").await;
    for replica in [writer, looking, waiting] {
        replica.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_are_not_true_change_nothing() {
    let nats = Nats::start().unwrap();
    let database = server().database().unwrap();
    let one = Replica::start(&database, &nats, NEVER).await;
    let two = Replica::start(&database, &nats, NEVER).await;
    one.reaches(&two, "one").await;
    let before = *two.store.hint(&things()).borrow();
    let (liar, lies) = (
        CancellationToken::new(),
        tokio::sync::broadcast::Sender::new(64),
    );
    let lying = tokio::spawn(muster_queue::nudge(
        NatsOptions::new(nats.url()),
        lies.subscribe(),
        |_, _| {},
        liar.clone(),
    ));
    // Until the liar is connected nobody hears it; of a burst only the largest lie is told.
    wait_for("the hearing of all lies", async || {
        for number in 0..20 {
            let _ = lies.send((things(), u64::MAX - number));
            let _ = lies.send((resource(&format!("invented-{number}")), 1));
        }
        let heard = two.heard.lock().unwrap();
        let heard = |name: &str, revision| heard.contains(&(name.to_owned(), revision));
        heard(THINGS, u64::MAX) && (0..20).all(|number| heard(&format!("invented-{number}"), 1))
    })
    .await;
    let revision = one.write("true").await;
    assert!(two.sees(revision, LONG).await);
    assert_eq!(revision, before + 1);
    assert_eq!(*two.store.hint(&things()).borrow(), revision);
    liar.cancel();
    lying.await.unwrap();
    one.end().await;
    two.end().await;
}
