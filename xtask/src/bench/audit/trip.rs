//! A policy server that is asked for every evaluation, over TLS on this machine. It allows everything
//! without a thought, so what is measured is the way there and back, and nothing else: whoever works so
//! has the evaluation itself beside it.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use muster_policy::remote::RemotePolicy;
use muster_policy::{Evaluator, Outcome, Request};
use muster_testkit::certificates::Certificates;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;

const TIME: Duration = Duration::from_secs(10);

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// It is closed, and there is a new one for each question.
    Closed,
    /// It is kept for the next question.
    Kept,
}

/// What asking came to.
pub(super) struct Trips {
    /// Answers a second.
    pub(super) rate: f64,
    /// Processor time for each, of who asks and who answers, in seconds.
    pub(super) processor: f64,
}

/// Asks from several threads at once, for a while. Called on a thread that may block.
pub(super) fn measure(
    connection: Connection,
    askers: usize,
    request: &Request,
    during: Duration,
    runtime: &Handle,
) -> Result<Trips> {
    let certificates = Certificates::generate()?;
    let address = runtime.block_on(serve(&certificates, connection))?;
    let client = client(&certificates, connection)?;
    let address = format!("https://{address}");
    let policy = RemotePolicy::new(client, &address, "bench", TIME, runtime.clone());
    let verdict = policy.judge(request);
    let said = &verdict.message;
    ensure!(verdict.outcome == Outcome::Pass, "the server: {said}");
    let (start, before) = (Instant::now(), processor_seconds()?);
    let count: usize = std::thread::scope(|scope| {
        let asking = (0..askers).map(|_| {
            scope.spawn(|| {
                let mut count = 0;
                while start.elapsed() < during {
                    let verdict = policy.judge(request);
                    count += usize::from(verdict.outcome == Outcome::Pass);
                }
                count
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|one| one.join().unwrap_or(0)).sum()
    });
    ensure!(count > 0, "the server does not answer");
    Ok(Trips {
        rate: count as f64 / start.elapsed().as_secs_f64(),
        processor: (processor_seconds()? - before) / count as f64,
    })
}

fn client(certificates: &Certificates, connection: Connection) -> Result<reqwest::Client> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(
        certificates.authority.as_bytes(),
    )?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A new connection is a whole one, as it is for a client that keeps no sessions.
    tls.resumption = Resumption::disabled();
    let idle = match connection {
        Connection::Closed => 0,
        Connection::Kept => usize::MAX,
    };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .pool_max_idle_per_host(idle)
        .no_proxy()
        .build()
        .context("making a client")
}

/// Serves until the runtime ends.
async fn serve(certificates: &Certificates, connection: Connection) -> Result<SocketAddr> {
    let chain = CertificateDer::from_pem_slice(certificates.server.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(certificates.server_key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(attend(stream, acceptor.clone(), connection));
        }
    });
    Ok(address)
}

async fn attend(stream: TcpStream, acceptor: TlsAcceptor, connection: Connection) {
    // Whoever asks tells what went wrong.
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let _ = http1::Builder::new()
        .keep_alive(connection == Connection::Kept)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn answer(request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await?.to_bytes();
    let asked: Value = serde_json::from_slice(&body)?;
    let said = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": asked["request"]["uid"], "allowed": true},
    });
    Ok(Response::builder()
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(said.to_string()))?)
}

/// The processor time that this process has used.
fn processor_seconds() -> Result<f64> {
    /// Linux reports in hundredths, whatever its clock does.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(')').context("our own times")?;
    // Behind the name, the twelfth and the thirteenth are the times in user mode and in the kernel.
    let times = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = times.map(|field| field.parse().unwrap_or(0)).sum();
    Ok(ticks as f64 / TICKS)
}
