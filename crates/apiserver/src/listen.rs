//! The network: TLS with HTTP/2 and HTTP/1.1, client certificates as identities, and an end that
//! lets every answer under way finish.

use crate::identity::{CertificateIdentity, Identity};
use crate::respond::BodyError;
use crate::server::Server;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take over the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long answers under way may take once the server ends.
const DRAIN: Duration = Duration::from_secs(10);
/// Watches of one client share a connection; there may be many.
const STREAMS: u32 = 1000;

/// Serves until `stop`, then lets what is under way finish.
pub async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = TaskTracker::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (server, acceptor) = (server.clone(), acceptor.clone());
                    connections.spawn(connection(server, stream, acceptor, stop.clone()));
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
    server.shut_down().await;
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end in time");
    }
}

async fn connection(
    server: Arc<Server>,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let identity = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| identity(chain.first()?));
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, identity) = (server.clone(), identity.clone());
        async move {
            let (mut parts, body) = request.into_parts();
            // Nobody outside may bring an identity of their own.
            parts.extensions.remove::<Identity>();
            if let Some(identity) = identity {
                parts.extensions.insert(CertificateIdentity(identity));
            }
            let body = body
                .map_err(|error| -> BodyError { error.into() })
                .boxed_unsync();
            let response = server.handle(Request::from_parts(parts, body)).await;
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

/// Whom a verified certificate names: the common name is the user, organizations are groups.
fn identity(certificate: &rustls::pki_types::CertificateDer<'_>) -> Option<Identity> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|name| name.as_str().ok().map(Into::into))
        .collect();
    Some(Identity {
        user,
        groups,
        ..Identity::default()
    })
}
