//! The network: TLS with HTTP/2 and HTTP/1.1, client certificates as identities, and an end that
//! lets every answer under way finish. Where a handler takes them, browsers on this very machine may
//! come without TLS: their first byte tells. Their requests are marked [`Plain`].

use crate::body::RequestBody;
use crate::front::{Front, Plain};
use crate::identity::{ClientCertificate, Identity};
use crate::respond::{Answer, BodyError};
use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take over the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The first byte of a TLS connection.
const HANDSHAKE_RECORD: u8 = 0x16;
/// How long answers under way may take once the server ends.
const DRAIN: Duration = Duration::from_secs(10);
/// Watches of one client share a connection; there may be many.
const STREAMS: u32 = 1000;

/// Who answers what the network asks.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request.
    fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'_, Answer>;

    /// Whether somebody on this machine may come without TLS. Their requests carry the mark [`Plain`].
    fn takes_plain(&self) -> bool {
        false
    }

    /// Ends what would go on for ever; answers under way still finish.
    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Handler for Front {
    fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'_, Answer> {
        Box::pin(Front::handle(self, request))
    }

    fn takes_plain(&self) -> bool {
        Front::takes_plain(self)
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(Front::shut_down(self))
    }
}

/// Serves until `stop`, then lets what is under way finish. Every connection is made with the TLS
/// configuration of its moment.
///
/// Neither generic nor an `async fn`: all of HTTP would be compiled anew with every binary that
/// serves.
pub fn serve(
    handler: Arc<dyn Handler>,
    listener: TcpListener,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    Box::pin(accept(handler, listener, tls, stop))
}

async fn accept(
    handler: Arc<dyn Handler>,
    listener: TcpListener,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    stop: CancellationToken,
) {
    let connections = TaskTracker::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let acceptor = TlsAcceptor::from(tls.borrow().clone());
                    let is_near = peer.ip().to_canonical().is_loopback();
                    let (handler, stop) = (handler.clone(), stop.clone());
                    connections.spawn(connection(handler, stream, is_near, acceptor, stop));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: give connections time to end.
                    tracing::warn!(%error, "accepting a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    connections.close();
    // A client that has stopped reading holds its answer up; it must not hold up the end.
    let ended = async {
        handler.shut_down().await;
        connections.wait().await;
    };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
}

async fn connection(
    handler: Arc<dyn Handler>,
    stream: TcpStream,
    is_near: bool,
    acceptor: TlsAcceptor,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    if is_near && handler.takes_plain() {
        match first_byte(&stream).await {
            Some(HANDSHAKE_RECORD) => {}
            Some(_) => return plain(handler, stream, stop).await,
            None => return tracing::debug!("a connection that says nothing"),
        }
    }
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .map(|chain| ClientCertificate(chain.iter().map(|c| c.clone().into_owned()).collect()));
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, certificate) = (handler.clone(), certificate.clone());
        async move {
            let (mut parts, body) = request.into_parts();
            // Nobody outside may bring an identity of their own.
            parts.extensions.remove::<Identity>();
            parts.extensions.remove::<ClientCertificate>();
            if let Some(certificate) = certificate {
                parts.extensions.insert(certificate);
            }
            let body = body
                .map_err(|error| -> BodyError { error.into() })
                .boxed_unsync();
            let response = handler.handle(Request::from_parts(parts, body)).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection");
    }
}

/// The first byte that is said, which stays to be read; none if nothing comes.
async fn first_byte(stream: &TcpStream) -> Option<u8> {
    let mut first = [0];
    match tokio::time::timeout(HANDSHAKE, stream.peek(&mut first)).await {
        Ok(Ok(1)) => first.first().copied(),
        _ => None,
    }
}

/// Somebody on this machine, without TLS. HTTP/1.1 only, which is what browsers speak then.
async fn plain(handler: Arc<dyn Handler>, stream: TcpStream, stop: CancellationToken) {
    let Ok(port) = stream.local_addr().map(|address| address.port()) else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let (mut parts, body) = request.into_parts();
            parts.extensions.remove::<Identity>();
            parts.extensions.remove::<ClientCertificate>();
            parts.extensions.insert(Plain(port));
            let body = body
                .map_err(|error| -> BodyError { error.into() })
                .boxed_unsync();
            let response = handler.handle(Request::from_parts(parts, body)).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(30));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "plain connection");
    }
}
