//! A web server for the tests, which answers by a function: plain, with TLS, or only to those who show a
//! certificate.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use muster_testkit::certificates::{Authority, Pair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What is asked: the path with its query, and the body.
pub struct Asked {
    pub target: String,
    pub body: Bytes,
}

/// What is answered; nothing means that the connection is closed.
pub type Answer = Option<Response<Full<Bytes>>>;
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Handler = dyn Fn(Asked) -> Answering + Send + Sync;

/// How the server is protected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protection {
    Plain,
    Tls,
    Mutual,
}

/// A running server; it ends when dropped.
pub struct Server {
    address: SocketAddr,
    protection: Protection,
    pub authority: Authority,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    pub async fn start<F>(
        protection: Protection,
        answer: impl Fn(Asked) -> F + Send + Sync + 'static,
    ) -> Result<Server>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let authority = Authority::new("policy server test")?;
        let acceptor = match protection {
            Protection::Plain => None,
            _ => Some(acceptor(&authority, protection == Protection::Mutual)?),
        };
        let handler: Arc<Handler> = Arc::new(move |asked| Box::pin(answer(asked)));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            let mut all = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, handler) = (acceptor.clone(), handler.clone());
                all.spawn(async move {
                    match acceptor {
                        None => serve(stream, handler).await,
                        // Whoever shows no good certificate hears no more than that.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, handler).await;
                            }
                        }
                    }
                });
            }
        });
        Ok(Server {
            address,
            protection,
            authority,
            connections,
            task,
        })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        match self.protection {
            Protection::Plain => format!("http://{}", self.address),
            _ => format!("https://{}", self.address),
        }
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// A certificate that it accepts.
    pub fn client(&self) -> Result<Pair> {
        self.authority.client("muster", &[])
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn acceptor(authority: &Authority, mutual: bool) -> Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pair = authority.server(&["127.0.0.1", "localhost"])?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = match mutual {
        false => builder.with_no_client_auth(),
        true => {
            let mut roots = RootCertStore::empty();
            let own = authority.certificate.as_bytes();
            roots.add(CertificateDer::from_pem_slice(own)?)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let config = builder.with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Arc<Handler>,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let target = request.uri().to_string();
            let body = request.into_body().collect().await?.to_bytes();
            match handler(Asked { target, body }).await {
                Some(answer) => Ok(answer),
                None => Err(anyhow::anyhow!("hanging up")),
            }
        }
    });
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// An answer with this status and body.
pub fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    Some(answer)
}
