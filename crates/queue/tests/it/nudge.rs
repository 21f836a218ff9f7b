//! Words between replicas, over a real NATS server that goes away and comes back.

use crate::place::LONG;
use anyhow::{Context, Result};
use muster_queue::{NatsOptions, nudge};
use muster_testkit::nats::Nats;
use muster_testkit::wait;
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// One process that writes and listens.
struct Replica {
    written: broadcast::Sender<(Arc<str>, u64)>,
    heard: Arc<Mutex<Vec<(String, u64)>>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Replica {
    fn start(url: &str) -> Replica {
        let written = broadcast::Sender::new(16);
        let heard: Arc<Mutex<Vec<(String, u64)>>> = Arc::default();
        let stop = CancellationToken::new();
        let hear = {
            let heard = heard.clone();
            move |resource: &Arc<str>, revision| {
                let word = (resource.to_string(), revision);
                heard.lock().expect("nobody panicked").push(word);
            }
        };
        let options = NatsOptions::new(url);
        let talk = nudge(options, written.subscribe(), hear, stop.clone());
        Replica {
            written,
            heard,
            stop,
            task: tokio::spawn(talk),
        }
    }

    fn write(&self, resource: &str, revision: u64) {
        let _ = self.written.send((resource.into(), revision));
    }

    fn heard(&self) -> Vec<(String, u64)> {
        self.heard.lock().expect("nobody panicked").clone()
    }

    /// Waits until it has heard this, which `again` may have to say more than once.
    async fn hears(&self, resource: &str, revision: u64, mut again: impl FnMut()) -> Result<()> {
        let word = (resource.to_owned(), revision);
        wait::until_async(&format!("{word:?}"), LONG, || {
            again();
            let heard = self.heard().contains(&word);
            async move { Ok(heard.then_some(())) }
        })
        .await
    }

    /// Waits until it hears what another writes.
    async fn meets(&self, other: &Replica) -> Result<()> {
        self.hears("meeting", 1, || other.write("meeting", 1)).await
    }

    async fn end(self) -> Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(LONG, self.task).await;
        Ok(ended.context("it does not end")??)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_writes_the_others_hear_and_itself_does_not() -> Result<()> {
    let server = Nats::start()?;
    let [one, two] = [(); 2].map(|()| Replica::start(&server.url()));
    two.meets(&one).await?;
    one.meets(&two).await?;
    one.write("pods", 7);
    two.hears("pods", 7, || {}).await?;
    // Whatever is heard later than this was said later.
    two.write("jobs", 8);
    one.hears("jobs", 8, || {}).await?;
    assert!(!one.heard().contains(&("pods".into(), 7)), "its own word");
    one.end().await?;
    two.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_heard_as_its_newest_word() -> Result<()> {
    let server = Nats::start()?;
    let [one, two] = [(); 2].map(|()| Replica::start(&server.url()));
    two.meets(&one).await?;
    let burst = 20_000;
    for revision in 1..=burst {
        one.write("pods", revision);
    }
    two.hears("pods", burst, || {}).await?;
    let heard = two.heard().len();
    assert!(heard < burst as usize / 2, "{heard} words");
    one.end().await?;
    two.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_word_is_ignored() -> Result<()> {
    let server = Nats::start()?;
    let listener = Replica::start(&server.url());
    let client = async_nats::connect(server.url()).await?;
    let word = r#"{"resource":"pods","revision":7}"#;
    // Once a word is heard, whatever is said is heard.
    wait::until_async("the first word", LONG, || async {
        client.publish("muster.nudge", word.into()).await?;
        client.flush().await?;
        Ok((!listener.heard().is_empty()).then_some(()))
    })
    .await?;
    let large = format!(r#"{{"resource":"{}","revision":1}}"#, "x".repeat(500_000));
    for garbage in [
        "",
        "nonsense",
        "{\"resource\":",
        r#"{"resource":7,"revision":"pods"}"#,
        r#"{"resource":"pods","revision":1e99}"#,
        "[[[[[[[[",
        &large,
    ] {
        client
            .publish("muster.nudge", garbage.to_owned().into())
            .await?;
    }
    let last = r#"{"resource":"last","revision":18446744073709551615}"#;
    client.publish("muster.nudge", last.into()).await?;
    client.flush().await?;
    listener.hears("last", u64::MAX, || {}).await?;
    for (resource, _) in listener.heard() {
        assert!(["pods", "last"].contains(&resource.as_str()), "{resource}");
    }
    listener.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_may_be_absent_at_first_and_go_and_come_back() -> Result<()> {
    let mut server = Nats::start()?;
    server.kill9()?;
    let [one, two] = [(); 2].map(|()| Replica::start(&server.url()));
    for round in 1..=2 {
        server.restart()?;
        let again = || one.write("round", round);
        two.hears("round", round, again).await?;
        server.kill9()?;
        // Nobody who writes is held up meanwhile.
        for revision in 0..1000 {
            one.write("away", revision);
        }
    }
    one.end().await?;
    two.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_given_up_is_made_anew() -> Result<()> {
    let mut server = Nats::start()?;
    let [one, two] = [(); 2].map(|()| Replica::start(&server.url()));
    two.meets(&one).await?;
    server.kill9()?;
    // In its place somebody who hangs up on everybody, until all patience is gone.
    let address = server.url().replace("nats://", "");
    let nobody = tokio::net::TcpListener::bind(&address).await?;
    for caller in 0..30 {
        let called = tokio::time::timeout(LONG, nobody.accept()).await;
        called.with_context(|| format!("only {caller} called"))??;
    }
    drop(nobody);
    server.restart()?;
    one.hears("again", 1, || two.write("again", 1)).await?;
    two.hears("again", 2, || one.write("again", 2)).await?;
    one.end().await?;
    two.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_what_it_listens_to() -> Result<()> {
    let server = Nats::start()?;
    let [one, two] = [(); 2].map(|()| Replica::start(&server.url()));
    two.meets(&one).await?;
    drop(one.written);
    tokio::time::timeout(LONG, one.task).await??;
    two.end().await?;
    // And also where nobody listens, or somebody who takes the call and never says a word.
    let nowhere = Replica::start("nats://127.0.0.1:9");
    tokio::task::yield_now().await;
    nowhere.end().await?;
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = mute.local_addr()?;
    let stopped = Replica::start(&format!("nats://{address}"));
    let _call = tokio::time::timeout(LONG, mute.accept()).await??;
    stopped.end().await
}
