//! An HTTPS client that sends a request exactly as written and returns the answer as it came: no
//! retries, no redirects, no decoding. HTTP/1.1, connections kept for reuse.

use crate::kubeconfig::Kubeconfig;
use anyhow::{Context, Result};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The longest time for one whole answer.
const ANSWER: Duration = Duration::from_secs(120);

/// A request; the target is a path with its query, in the form it goes over the wire.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: Method,
    /// `/api/v1/namespaces?limit=1`
    pub target: String,
    /// Headers beside `Host` and `Authorization`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// A request with no headers and no body.
    pub fn new(method: Method, target: impl Into<String>) -> Request {
        Request {
            method,
            target: target.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Request> {
        self.headers
            .append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        Ok(self)
    }

    /// Sets the body and its type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Result<Request> {
        self.body = body.into();
        self.header("content-type", content_type)
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, undecoded.
    pub body: Bytes,
}

impl Response {
    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// A client of one server, with one identity. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    kubeconfig: Kubeconfig,
    server: Uri,
    authorization: Option<HeaderValue>,
    tls: TlsConnector,
    idle: Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

impl Client {
    /// A client for the server and the identity of a kubeconfig.
    pub fn new(kubeconfig: &Kubeconfig) -> Result<Client> {
        let authorization = match &kubeconfig.token {
            Some(token) => Some(HeaderValue::try_from(format!("Bearer {token}"))?),
            None => None,
        };
        let tls = TlsConnector::from(Arc::new(tls(kubeconfig)?));
        let server: Uri = kubeconfig.server.parse().context("the server's URL")?;
        Ok(Client {
            kubeconfig: kubeconfig.clone(),
            server,
            authorization,
            tls,
            idle: Arc::default(),
        })
    }

    /// A client of the same server that does not say who it is.
    pub fn stranger(&self) -> Result<Client> {
        Client::new(&Kubeconfig {
            token: None,
            certificate: None,
            ..self.kubeconfig.clone()
        })
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, request: Request) -> Result<Response> {
        let (method, target) = (request.method.clone(), request.target.clone());
        let exchange = async {
            let (answer, connection) = self.open(request).await?;
            let (head, body) = answer.into_parts();
            let body = body
                .collect()
                .await
                .context("the answer broke off")?
                .to_bytes();
            self.keep(connection);
            Ok(Response {
                status: head.status,
                headers: head.headers,
                body,
            })
        };
        timeout(ANSWER, exchange)
            .await
            .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {ANSWER:?}")))
            .with_context(|| format!("{method} {target}"))
    }

    /// Sends a request and reads the whole answer without keeping it; gives its size. For answers
    /// that only matter by how long they take. One that is an error is an error here.
    pub async fn skim(&self, request: Request) -> Result<u64> {
        let (method, target) = (request.method.clone(), request.target.clone());
        let exchange = async {
            let (answer, connection) = self.open(request).await?;
            let (head, mut body) = answer.into_parts();
            if !head.status.is_success() {
                let text = body.collect().await?.to_bytes();
                let text = String::from_utf8_lossy(&text);
                anyhow::bail!("answered {}: {text}", head.status);
            }
            let mut size = 0;
            while let Some(frame) = body.frame().await {
                let frame = frame.context("the answer broke off")?;
                size += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            self.keep(connection);
            Ok(size)
        };
        timeout(ANSWER, exchange)
            .await
            .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {ANSWER:?}")))
            .with_context(|| format!("{method} {target}"))
    }

    /// A GET of JSON.
    pub async fn get(&self, target: &str) -> Result<Response> {
        self.send(Request::new(Method::GET, target)).await
    }

    /// Sends a request and returns as soon as the answer's head is here.
    pub(crate) async fn open(
        &self,
        request: Request,
    ) -> Result<(http::Response<Incoming>, SendRequest<Full<Bytes>>)> {
        let uri: Uri = request.target.parse().context("the request's target")?;
        let mut message = http::Request::new(Full::new(request.body));
        *message.method_mut() = request.method;
        *message.uri_mut() = uri;
        *message.headers_mut() = request.headers;
        let authority = self
            .server
            .authority()
            .context("the server's URL has no host")?;
        message
            .headers_mut()
            .insert(HOST, HeaderValue::try_from(authority.as_str())?);
        if let Some(authorization) = &self.authorization
            && !message.headers().contains_key(AUTHORIZATION)
        {
            message
                .headers_mut()
                .insert(AUTHORIZATION, authorization.clone());
        }
        let mut connection = self.connection().await?;
        let answer = connection
            .send_request(message)
            .await
            .context("no answer")?;
        Ok((answer, connection))
    }

    /// A kept connection that is still good, or a new one.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>> {
        while let Some(mut connection) = self.kept() {
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = self.connect().await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the connection; its error is the one that the request sees too.
        tokio::spawn(driver);
        Ok(sender)
    }

    /// A bare connection, for tests that write the bytes themselves.
    pub async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let host = self.server.host().context("the server's URL has no host")?;
        let port = self.server.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host, port))
            .await
            .context("cannot connect")?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_string())?;
        self.tls
            .connect(name, stream)
            .await
            .context("no TLS connection")
    }

    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        if !connection.is_closed() {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(connection);
        }
    }
}

fn tls(kubeconfig: &Kubeconfig) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_slice_iter(kubeconfig.authority.as_deref().unwrap_or(b""))
    {
        roots.add(certificate.context("the certificate authority")?)?;
    }
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &kubeconfig.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .context("the client certificate")?;
    let key = PrivateKeyDer::from_pem_slice(key).context("the client key")?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

/// A client for plain HTTP, and for HTTPS under the given authority.
pub(crate) fn plain_client(authority: Option<&str>) -> Result<reqwest::Client> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.unwrap_or_default().as_bytes()) {
        roots.add(certificate.context("the certificate authority")?)?;
    }
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls);
    Ok(builder.no_proxy().timeout(ANSWER).build()?)
}

/// Whether `/readyz` answers 200. For use while a server starts: a failure of any sort is "no".
/// It runs on a thread of its own, so that it may be called from inside and outside a runtime.
pub fn is_ready(kubeconfig: &Kubeconfig) -> bool {
    let kubeconfig = kubeconfig.clone();
    let probe = move || -> Result<StatusCode> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let client = Client::new(&kubeconfig)?;
        Ok(runtime.block_on(client.get("/readyz"))?.status)
    };
    matches!(thread::spawn(probe).join(), Ok(Ok(StatusCode::OK)))
}
