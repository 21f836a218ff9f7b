//! Of many operators one leads: who resigns is followed at once, who dies is followed when its
//! Lease has lapsed, and no two lead at a time.

use crate::clients::reflector::client;
use anyhow::Result;
use muster_operator::{Election, Terms};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(60);
const TERMS: Terms = Terms {
    duration: Duration::from_secs(6),
    deadline: Duration::from_secs(4),
    retry: Duration::from_millis(100),
};

/// Who leads now, and how many.
#[derive(Clone, Default)]
struct Seat {
    name: Arc<Mutex<String>>,
    taken: Arc<AtomicUsize>,
}

struct Seated(Seat);

impl Seat {
    fn take(&self, name: &str) -> Seated {
        assert_eq!(self.taken.fetch_add(1, Ordering::SeqCst), 0, "two lead");
        *self.name.lock().unwrap() = name.into();
        Seated(self.clone())
    }

    async fn until(&self, name: &str) -> Result<()> {
        wait::until_async(&format!("{name} to lead"), LIMIT, async || {
            Ok((*self.name.lock().unwrap() == name).then_some(()))
        })
        .await
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(client: &kube::Client, seat: &Seat, name: &str) -> (CancellationToken, JoinHandle<()>) {
    let stop = CancellationToken::new();
    let election = Election::new(client, "muster", name, TERMS);
    let (seat, name, until) = (seat.clone(), name.to_owned(), stop.clone());
    let running = tokio::spawn(async move {
        let work = async |term: CancellationToken| {
            let _seated = seat.take(&name);
            term.cancelled().await;
        };
        election.run(work, until).await;
    });
    (stop, running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_operator_leads_and_another_follows() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let client = client(&muster.kubeconfig_path()).await?;
    let seat = Seat::default();
    let (stop_first, first) = run(&client, &seat, "first");
    seat.until("first").await?;
    let (_stop_second, second) = run(&client, &seat, "second");
    stop_first.cancel();
    first.await?;
    seat.until("second").await?;
    let (stop_third, third) = run(&client, &seat, "third");
    // As if its process had died.
    second.abort();
    seat.until("third").await?;
    stop_third.cancel();
    Ok(third.await?)
}
