//! The servers as their clients find them: there, or just gone. Every start is a new generation. A
//! failure is only forgiven if the server was taken away since the request began.

use anyhow::{Context, Result};
use muster_testkit::http::Client;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a restart may take on a busy machine.
const RESTART: Duration = Duration::from_secs(90);

/// One run of a server.
#[derive(Clone)]
pub(super) struct Generation {
    place: usize,
    number: u64,
    pub(super) client: Client,
}

type Place = watch::Receiver<Option<Generation>>;

/// Where clients look for servers: one, or several that are as good as each other.
#[derive(Clone)]
pub(super) struct Target(Vec<Place>);

/// Who says where the servers are.
pub(super) struct Announcer {
    places: Vec<watch::Sender<Option<Generation>>>,
    number: u64,
}

impl Announcer {
    /// An announcer of servers that run.
    pub(super) fn new(clients: Vec<Client>) -> Announcer {
        let places = clients.into_iter().enumerate().map(|(place, client)| {
            let number = 0;
            watch::Sender::new(Some(Generation {
                place,
                number,
                client,
            }))
        });
        Announcer {
            places: places.collect(),
            number: 0,
        }
    }

    /// To be called before a server is taken away, so that no client blames it for the failure.
    pub(super) fn down(&self, place: usize) {
        self.places[place].send_replace(None);
    }

    /// A server is there again.
    pub(super) fn up(&mut self, place: usize, client: Client) {
        self.number += 1;
        let number = self.number;
        self.places[place].send_replace(Some(Generation {
            place,
            number,
            client,
        }));
    }

    /// How clients follow.
    pub(super) fn target(&self) -> Target {
        Target(self.places.iter().map(watch::Sender::subscribe).collect())
    }
}

impl Target {
    /// The preferred server, or another that is there, or the preferred one as soon as it is.
    pub(super) async fn generation(&mut self, preferred: usize) -> Result<Generation> {
        let count = self.0.len();
        for place in (preferred..preferred + count).map(|place| place % count) {
            if let Some(found) = self.0[place].borrow().as_ref() {
                return Ok(found.clone());
            }
        }
        let there = self.0[preferred % count].wait_for(Option::is_some);
        let there = timeout(RESTART, there).await;
        let found = there.context("the server did not come back")??.clone();
        found.context("the server is there")
    }

    /// Forgives a failure of a request to a generation that has been taken away since.
    pub(super) fn forgive(&self, generation: &Generation, error: anyhow::Error) -> Result<()> {
        let place = self.0[generation.place].borrow();
        match place.as_ref().map(|now| now.number) == Some(generation.number) {
            true => Err(error.context("a request failed although the server was there")),
            false => Ok(()),
        }
    }
}
