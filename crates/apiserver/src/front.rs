//! What the network meets: the server, or, while it is still being made ready, somebody who says
//! what it waits for. A client is told to come again; a probe learns that the process lives and
//! is not ready.

use crate::body::RequestBody;
use crate::respond::{self, Answer};
use crate::server::Server;
use http::{Request, StatusCode};
use muster_kind::Status;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// A server, now or soon.
pub struct Front {
    server: OnceLock<Arc<Server>>,
    waits_for: watch::Sender<String>,
}

impl Front {
    /// A server that is there.
    pub fn of(server: Arc<Server>) -> Arc<Self> {
        let front = Front::waiting("nothing");
        front.open(server);
        front
    }

    /// A server that will be there when something has happened.
    pub fn waiting(event: &str) -> Arc<Self> {
        Arc::new(Front {
            server: OnceLock::new(),
            waits_for: watch::Sender::new(event.into()),
        })
    }

    /// Says what the server waits for now.
    pub fn wait_for(&self, event: &str) {
        self.waits_for.send_replace(event.into());
    }

    /// The server is there. Only the first one counts.
    pub fn open(&self, server: Arc<Server>) {
        let _ = self.server.set(server);
    }

    /// Answers a request.
    pub async fn handle(&self, request: Request<RequestBody>) -> Answer {
        match self.server.get() {
            Some(server) => server.handle(request).await,
            None => self.not_yet(request.uri().path()),
        }
    }

    fn not_yet(&self, path: &str) -> Answer {
        let event = self.waits_for.borrow().clone();
        match path.trim_start_matches('/').split('/').next() {
            Some("livez" | "healthz") => {
                respond::answer(StatusCode::OK, "text/plain; charset=utf-8", "ok")
            }
            Some("readyz") => respond::answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                "text/plain; charset=utf-8",
                format!("[-]start failed: waiting for {event}\nreadyz check failed\n"),
            ),
            _ => {
                let mut status = Status::unavailable(format!("the server waits for {event}"));
                status.retry_after = Some(1);
                respond::error(&status)
            }
        }
    }

    /// Ends the server, if it is there.
    pub(crate) async fn shut_down(&self) {
        if let Some(server) = self.server.get() {
            server.shut_down().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn code(front: &Front, path: &str) -> u16 {
        let mut request = Request::new(respond::full(""));
        *request.uri_mut() = path.parse().unwrap();
        front.handle(request).await.status().as_u16()
    }

    #[tokio::test]
    async fn a_server_that_waits_lives_is_not_ready_and_asks_to_come_again() {
        let front = Front::waiting("the database");
        for (path, expected) in [
            ("/livez", 200),
            ("/livez/ping", 200),
            ("/healthz", 200),
            ("/readyz", 500),
            ("/apis", 503),
            ("/apis/x.io/v1/things", 503),
        ] {
            assert_eq!(code(&front, path).await, expected, "{path}");
        }
    }
}
