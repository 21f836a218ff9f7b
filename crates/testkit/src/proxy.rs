//! A proxy before a real plain-HTTP server that brings the faults of a network and of a busy host:
//! cut connections, refusals, redirects, changed bytes, silence. What passes through it is
//! remembered, so that a test can say what was asked and with which login.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the proxy does with a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing: the server's answer goes through.
    Pass,
    /// The answer's body is cut off after so many bytes.
    CutAfter(usize),
    /// The answer's body ends after so many bytes as if it were whole.
    EndAfter(usize),
    /// The connection is closed with no answer.
    HangUp,
    /// No answer ever comes.
    Silence,
    /// This answer, and the server is not asked.
    Answer(StatusCode, Vec<(&'static str, String)>, String),
    /// The server's answer with one byte of its body changed.
    Change,
    /// The server's answer without one of its headers.
    Without(&'static str),
    /// The server is asked without this header of the request.
    Unasked(&'static str),
}

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
    /// Its headers.
    pub headers: HeaderMap,
}

type Decide = dyn Fn(&Seen, usize) -> Fault + Send + Sync;
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A running proxy; it ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    carried: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.address)
    }
}

impl Proxy {
    /// Starts a proxy before `server` (host and port). For each request `decide` is given the
    /// request and how many came before with the same method and path.
    pub async fn start(
        server: &str,
        decide: impl Fn(&Seen, usize) -> Fault + Send + Sync + 'static,
    ) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let carried = Arc::<AtomicU64>::default();
        let shared = Arc::new(Shared {
            server: server.into(),
            decide: Box::new(decide),
            seen: seen.clone(),
            same: Mutex::default(),
            carried: carried.clone(),
        });
        let task = tokio::spawn(async move {
            // The connections end with the task that took them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, shared.clone()));
            }
        });
        Ok(Proxy {
            address,
            seen,
            carried,
            task,
        })
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// What came by so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many bytes of the server's answers were passed on.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// How many requests had this method and a target that contains the text.
    pub fn count(&self, method: Method, part: &str) -> usize {
        let matches = |seen: &&Seen| seen.method == method && seen.target.contains(part);
        self.seen().iter().filter(matches).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    server: String,
    decide: Box<Decide>,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// How many requests of a method and a target there were.
    same: Mutex<HashMap<(Method, String), usize>>,
    carried: Arc<AtomicU64>,
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = hyper::service::service_fn(move |request| {
        let shared = shared.clone();
        async move { answer(request, &shared).await }
    });
    // A connection that was cut on purpose ends with an error.
    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Body>> {
    let target = request
        .uri()
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let seen = Seen {
        method: request.method().clone(),
        target,
        headers: request.headers().clone(),
    };
    let before = {
        let mut all = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(seen.clone());
        let mut same = shared.same.lock().unwrap_or_else(PoisonError::into_inner);
        let count = same
            .entry((seen.method.clone(), seen.target.clone()))
            .or_default();
        *count += 1;
        *count - 1
    };
    let fault = (shared.decide)(&seen, before);
    match fault {
        Fault::HangUp => anyhow::bail!("hung up"),
        Fault::Silence => std::future::pending().await,
        Fault::Answer(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            Ok(response.body(whole(Bytes::from(body)))?)
        }
        fault => forward(request, shared, fault).await,
    }
}

async fn forward(
    mut request: Request<Incoming>,
    shared: &Shared,
    fault: Fault,
) -> Result<Response<Body>> {
    if let Fault::Unasked(name) = &fault {
        request.headers_mut().remove(*name);
    }
    let stream = TcpStream::connect(&shared.server)
        .await
        .context("the server is gone")?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse::<Uri>()?;
    let response = sender.send_request(request).await?;
    let (mut head, body) = response.into_parts();
    let carried = shared.carried.clone();
    let body = body.map_frame(move |frame| {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        carried.fetch_add(bytes as u64, Ordering::Relaxed);
        frame
    });
    let body = body.map_err(std::io::Error::other).boxed_unsync();
    let body = match fault {
        Fault::CutAfter(count) => first(count, body, true).await?,
        Fault::EndAfter(count) => {
            head.headers.remove("content-length");
            first(count, body, false).await?
        }
        Fault::Change => {
            let mut bytes = body.collect().await?.to_bytes().to_vec();
            if let Some(byte) = bytes.first_mut() {
                *byte ^= 1;
            }
            whole(bytes.into())
        }
        Fault::Without(name) => {
            head.headers.remove(name);
            body
        }
        _ => body,
    };
    Ok(Response::from_parts(head, body))
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// The first bytes of a body, and then a cut or an end.
async fn first(count: usize, body: Body, cut: bool) -> Result<Body> {
    let bytes = body.collect().await?.to_bytes();
    let kept = bytes.slice(..count.min(bytes.len()));
    let mut frames = vec![Ok(Frame::data(kept))];
    if cut {
        frames.push(Err(std::io::Error::other("cut")));
    }
    // The frames come one by one, so that the first is on its way before the cut.
    let stream = futures::stream::unfold(frames.into_iter(), |mut frames| async move {
        tokio::task::yield_now().await;
        frames.next().map(|frame| (frame, frames))
    });
    Ok(BodyExt::boxed_unsync(StreamBody::new(stream)))
}
