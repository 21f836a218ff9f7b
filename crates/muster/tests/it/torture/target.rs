//! The server as its clients find it: there, or just killed. Every restart is a new generation on
//! a new port. A failure is only forgiven if the server was killed since the request began.

use anyhow::{Context, Result};
use muster_testkit::http::Client;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a restart may take on a busy machine.
const RESTART: Duration = Duration::from_secs(60);

/// One run of the server.
#[derive(Clone)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) client: Client,
}

/// Where clients look for the server.
#[derive(Clone)]
pub(super) struct Target(watch::Receiver<Option<Generation>>);

/// Who says where the server is.
pub(super) struct Announcer {
    sender: watch::Sender<Option<Generation>>,
    number: u64,
}

impl Announcer {
    /// An announcer of a server that runs.
    pub(super) fn new(client: Client) -> Announcer {
        let number = 0;
        let sender = watch::Sender::new(Some(Generation { number, client }));
        Announcer { sender, number }
    }

    /// To be called before the server is killed, so that no client blames it for the failure.
    pub(super) fn down(&self) {
        self.sender.send_replace(None);
    }

    /// The server is there again.
    pub(super) fn up(&mut self, client: Client) {
        self.number += 1;
        let number = self.number;
        self.sender
            .send_replace(Some(Generation { number, client }));
    }

    /// How clients follow.
    pub(super) fn target(&self) -> Target {
        Target(self.sender.subscribe())
    }
}

impl Target {
    /// The server, as soon as it is there.
    pub(super) async fn generation(&mut self) -> Result<Generation> {
        let there = timeout(RESTART, self.0.wait_for(Option::is_some)).await;
        let found = there.context("the server did not come back")??.clone();
        found.context("the server is there")
    }

    /// Forgives a failure of a request to a generation that has been killed since.
    pub(super) fn forgive(&self, generation: &Generation, error: anyhow::Error) -> Result<()> {
        let now = self.0.borrow().as_ref().map(|now| now.number);
        match now == Some(generation.number) {
            true => Err(error.context("a request failed although the server was not killed")),
            false => Ok(()),
        }
    }
}
