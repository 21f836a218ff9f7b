//! What the network meets: the server, or, while it is still being made ready, somebody who says
//! what it waits for. A client is told to come again; a probe learns that the process lives and
//! is not ready. One word at the root of all paths may belong to a [`Lobby`], which sees to it by itself
//! who may ask; everything else is the server's. Who comes without TLS, from this machine, gets no further
//! than the lobby.

use crate::body::RequestBody;
use crate::compress;
use crate::respond::{self, Answer};
use crate::server::Server;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use muster_kind::Status;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The largest body that the lobby is given.
const LOBBY_BODY: usize = 64 * 1024;
/// How long it may take to come: nobody knows yet who sends it.
const LOBBY_PATIENCE: Duration = Duration::from_secs(10);

/// A mark on requests that came without TLS, with the port they came to; put there by the listener.
#[derive(Clone, Copy, Debug)]
pub struct Plain(pub u16);

/// Answers the paths below one word, to people who sign in there.
#[async_trait]
pub trait Lobby: Send + Sync + 'static {
    /// The word, such as `ui` for `/ui/…`. It must not be one of the server's own.
    fn root(&self) -> &'static str;

    /// Whether somebody on this machine may come without TLS.
    fn takes_plain(&self) -> bool {
        false
    }

    /// Answers anybody. Whether the connection is one that nobody else can read is told.
    async fn answer(&self, request: Request<Bytes>, is_secure: bool) -> Response<Bytes>;
}

/// A server, now or soon.
pub struct Front {
    lobby: OnceLock<Arc<dyn Lobby>>,
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
            lobby: OnceLock::new(),
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

    /// From now on there is a lobby. Only the first one counts.
    pub fn furnish(&self, lobby: Arc<dyn Lobby>) {
        let _ = self.lobby.set(lobby);
    }

    /// Whether there is a lobby that people may come to without TLS.
    pub(crate) fn takes_plain(&self) -> bool {
        self.lobby.get().is_some_and(|lobby| lobby.takes_plain())
    }

    /// Answers a request.
    pub async fn handle(&self, request: Request<RequestBody>) -> Answer {
        let plain = request.extensions().get::<Plain>().copied();
        if plain.is_some_and(|Plain(port)| !is_local(request.headers(), port)) {
            return bad("this address is not one of this machine's\n");
        }
        if let Some(lobby) = self.lobby.get() {
            let path = request.uri().path();
            let rest = path.strip_prefix('/').unwrap_or_default();
            if rest.split('/').next() == Some(lobby.root()) {
                return meet(&**lobby, request, plain.is_none()).await;
            }
            if path == "/" && (plain.is_some() || wants_page(request.headers())) {
                return lead_to(lobby.root());
            }
        }
        if plain.is_some() {
            return bad("this is HTTPS; without it there are only the pages\n");
        }
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

/// Has the lobby answer.
async fn meet(lobby: &dyn Lobby, request: Request<RequestBody>, is_secure: bool) -> Answer {
    let (parts, body) = request.into_parts();
    let is_packed = compress::is_accepted(&parts.headers);
    let body = timeout(LOBBY_PATIENCE, small(body)).await;
    let Some(body) = body.ok().flatten() else {
        return bad("the body is too large, or broke off\n");
    };
    let request = Request::from_parts(parts, body);
    let answer = lobby.answer(request, is_secure).await.map(respond::full);
    match is_packed {
        true => compress::whole(answer).await,
        false => answer,
    }
}

/// A body that is not too large; none if it is, or if it breaks off.
async fn small(mut body: RequestBody) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        if read.len() + data.len() > LOBBY_BODY {
            return None;
        }
        read.extend_from_slice(&data);
    }
    Some(read.freeze())
}

/// Whether a request names this machine as nobody else can be called: a name that is looked up could be
/// anybody's, and lead strangers' pages here.
fn is_local(headers: &HeaderMap, port: u16) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let names = ["127.0.0.1", "localhost", "[::1]"];
    let mut names = names.iter().map(|name| format!("{name}:{port}"));
    host.is_some_and(|host| names.any(|name| name.eq_ignore_ascii_case(host)))
}

/// Whether a browser asks.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains("text/html"))
}

fn lead_to(root: &str) -> Answer {
    let mut answer = respond::answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    if let Ok(to) = HeaderValue::from_str(&format!("/{root}")) {
        answer.headers_mut().insert(header::LOCATION, to);
    }
    answer
}

fn bad(why: &'static str) -> Answer {
    respond::answer(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Greeting;

    #[async_trait]
    impl Lobby for Greeting {
        fn root(&self) -> &'static str {
            "ui"
        }
        async fn answer(&self, request: Request<Bytes>, is_secure: bool) -> Response<Bytes> {
            Response::new(format!("{} {is_secure}", request.body().len()).into())
        }
    }

    #[tokio::test]
    async fn who_comes_without_tls_gets_no_further_than_the_lobby() {
        let front = Front::waiting("nothing");
        front.furnish(Arc::new(Greeting));
        for (path, host, plain, expected) in [
            ("/ui", "127.0.0.1:7", true, 200),
            ("/ui/x", "localhost:7", true, 200),
            ("/ui", "[::1]:7", true, 200),
            ("/", "127.0.0.1:7", true, 303),
            ("/apis", "127.0.0.1:7", true, 400),
            ("/uix", "127.0.0.1:7", true, 400),
            ("//ui", "127.0.0.1:7", true, 400),
            ("/ui", "127.0.0.1:8", true, 400),
            ("/ui", "127.0.0.1", true, 400),
            ("/ui", "rebound.example:7", true, 400),
            ("/ui", "rebound.example:7", false, 200),
            ("/", "127.0.0.1:7", false, 503),
            ("/apis", "127.0.0.1:7", false, 503),
        ] {
            let mut request = Request::new(respond::full("abc"));
            *request.uri_mut() = path.parse().unwrap();
            request.headers_mut().insert("host", host.parse().unwrap());
            if plain {
                request.extensions_mut().insert(Plain(7));
            }
            let answer = front.handle(request).await;
            assert_eq!(answer.status(), expected, "{path} {host} {plain}");
        }
        let mut request = Request::new(respond::full(vec![b'x'; LOBBY_BODY + 1]));
        *request.uri_mut() = "/ui".parse().unwrap();
        assert_eq!(front.handle(request).await.status(), 400);
    }

    #[tokio::test]
    async fn a_browser_that_asks_for_the_root_is_led_to_the_lobby() {
        let front = Front::waiting("nothing");
        front.furnish(Arc::new(Greeting));
        let mut request = Request::new(respond::full(""));
        *request.uri_mut() = "/".parse().unwrap();
        let accept = "text/html,application/xhtml+xml".parse().unwrap();
        request.headers_mut().insert(header::ACCEPT, accept);
        let answer = front.handle(request).await;
        assert_eq!(answer.headers()[header::LOCATION], "/ui");
    }

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
