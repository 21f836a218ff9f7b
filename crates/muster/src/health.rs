//! How a role is, for whoever keeps it alive and watches it: `/healthz`, `/readyz` and `/metrics` on
//! an address of their own, in plain HTTP and without a login, for the roles that serve no API. What
//! is told there names no object and no secret. `muster up` tells the same on its API address.

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use bytes::Bytes;
use clap::Args;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_apiserver::Counters;
use muster_control::Panics;
use muster_operator::{CONTENT_TYPE, Metrics, Operator, Standing};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How many connections are served at once; others wait.
const CONNECTIONS: usize = 32;
/// How long a connection may last, and how long a client may take to say what it wants.
const LONGEST: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a role says how it is.
#[derive(Args)]
pub(crate) struct Health {
    /// Where /healthz, /readyz and /metrics are served, in plain HTTP; port 0 chooses a free one,
    /// and `off` serves them nowhere.
    #[arg(
        long,
        env = "MUSTER_HEALTH_LISTEN",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:8080"
    )]
    health_listen: Place,
    #[arg(skip)]
    counted: Arc<Counted>,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(SocketAddr),
    Nowhere,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Place::Nowhere),
            _ => text.parse().map(Place::At).map_err(|_| {
                "an address with a port is wanted, such as 0.0.0.0:8080, or `off`".into()
            }),
        }
    }
}

/// Whether a role has vulnerability data of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Here,
    Elsewhere,
}

/// What a role counts, and whom to ask how it is, once it works.
pub(crate) struct Counted {
    metrics: Arc<Metrics>,
    audit: muster_audit::Metrics,
    operator: OnceLock<Arc<Operator>>,
}

impl Default for Counted {
    fn default() -> Self {
        let panics = Panics::default();
        let audit = muster_audit::Metrics::counting(panics.clone());
        Counted {
            metrics: Arc::new(Metrics::with(panics, |registry| audit.register(registry))),
            audit,
            operator: OnceLock::new(),
        }
    }
}

impl Counted {
    /// What an audit counts.
    pub(crate) fn audit(&self) -> muster_audit::Metrics {
        self.audit.clone()
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// The role works from now on.
    pub(crate) fn begin(&self, operator: &Arc<Operator>) {
        // It begins once.
        let _ = self.operator.set(operator.clone());
    }

    async fn measured(&self) -> &Metrics {
        if let Some(operator) = self.operator.get() {
            operator.measure().await;
        }
        &self.metrics
    }

    async fn standings(&self, data: Data) -> Vec<Standing> {
        let Some(operator) = self.operator.get() else {
            return vec![Standing {
                name: "queue",
                is_needed: data == Data::Here,
                state: Err("not reached yet".into()),
            }];
        };
        let mut standings = operator.servers().await;
        match data {
            Data::Here => standings.push(operator.data()),
            // An operator without the queue hands nothing out, and still answers kube-apiserver's
            // questions: one that is not ready would not be asked.
            Data::Elsewhere => {
                for queue in standings.iter_mut().filter(|one| one.name == "queue") {
                    queue.is_needed = false;
                }
            }
        }
        standings
    }
}

#[async_trait]
impl Counters for Counted {
    async fn lines(&self) -> String {
        self.measured().await.lines()
    }
}

impl Health {
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.counted.metrics()
    }

    pub(crate) fn audit(&self) -> muster_audit::Metrics {
        self.counted.audit()
    }

    /// Begins to answer, unless nobody is to be answered.
    pub(crate) async fn serve(&self, data: Data) -> Result<Arc<Counted>> {
        let counted = self.counted.clone();
        if let Place::At(address) = self.health_listen {
            let listener = bind(address).await?;
            let address = listener.local_addr().context("asking for the port")?;
            tracing::info!(%address, "telling health and metrics");
            tokio::spawn(accept(listener, counted.clone(), data));
        }
        Ok(counted)
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "{address} is in use by another process; choose another address with `--health-listen ADDRESS:PORT`, or `--health-listen off`"
        ),
        Err(error) => Err(error).with_context(|| format!("listening on {address}")),
    }
}

async fn accept(listener: TcpListener, counted: Arc<Counted>, data: Data) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // A semaphore that is never closed always gives.
        let place = places.clone().acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connection(stream, counted.clone(), data);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(LONGEST, connection).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, counted: Arc<Counted>, data: Data) {
    let service = service_fn(move |request: Request<Incoming>| {
        let counted = counted.clone();
        async move { Ok::<_, Infallible>(answer(&request, &counted, data).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        // Places are few, and whoever asks how we are asks once.
        .keep_alive(false)
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "telling health");
    }
}

async fn answer<B>(request: &Request<B>, counted: &Counted, data: Data) -> Response<Full<Bytes>> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/healthz" | "/livez") => {
            (StatusCode::OK, PLAIN, "ok\n".into())
        }
        (&Method::GET | &Method::HEAD, "/readyz") => {
            let (is_ready, text) = ready(&counted.standings(data).await);
            let status = match is_ready {
                true => StatusCode::OK,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            (status, PLAIN, text)
        }
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let text = counted.measured().await.text();
            (StatusCode::OK, CONTENT_TYPE, text)
        }
        (&Method::GET | &Method::HEAD, _) => {
            let text = "there are /healthz, /readyz and /metrics\n";
            (StatusCode::NOT_FOUND, PLAIN, text.into())
        }
        _ => {
            let text = "only GET and HEAD are answered\n";
            (StatusCode::METHOD_NOT_ALLOWED, PLAIN, text.into())
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Whether everything that is needed is there, and a line about each.
fn ready(standings: &[Standing]) -> (bool, String) {
    let mut text = String::new();
    for standing in standings {
        let (sign, state) = match &standing.state {
            Ok(state) => ("+", state),
            Err(state) if standing.is_needed => ("-", state),
            Err(state) => ("?", state),
        };
        // What others say is told in one line.
        let state: String = state
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        text.push_str(&format!("[{sign}] {}: {state}\n", standing.name));
    }
    let is_ready = standings
        .iter()
        .all(|standing| !standing.is_needed || standing.state.is_ok());
    text.push_str(if is_ready { "ready\n" } else { "not ready\n" });
    (is_ready, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_off_is_taken() {
        let at = |text: &str| Place::At(text.parse().unwrap());
        for (text, place) in [
            ("off", Ok(Place::Nowhere)),
            ("127.0.0.1:0", Ok(at("127.0.0.1:0"))),
            ("[::]:8080", Ok(at("[::]:8080"))),
            ("8080", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(text.parse::<Place>().map_err(drop), place, "{text}");
        }
    }

    #[test]
    fn a_role_is_ready_when_all_that_it_needs_is_there() {
        let standing = |is_needed, is_fine: bool| Standing {
            name: "it",
            is_needed,
            state: match is_fine {
                true => Ok("ok".into()),
                false => Err("lost\nand gone".into()),
            },
        };
        for (standings, is_ready, first) in [
            (vec![standing(true, true)], true, "[+] it: ok"),
            (vec![standing(true, false)], false, "[-] it: lostand gone"),
            (
                vec![standing(false, false), standing(true, true)],
                true,
                "[?] it: lostand gone",
            ),
        ] {
            let (told, text) = ready(&standings);
            assert_eq!(told, is_ready, "{text}");
            assert_eq!(text.lines().next(), Some(first));
        }
    }

    #[tokio::test]
    async fn a_role_that_has_not_begun_lives_and_is_not_ready() {
        let counted = Counted::default();
        for (method, path, status) in [
            (Method::GET, "/healthz", 200),
            (Method::GET, "/readyz", 503),
            (Method::GET, "/metrics", 200),
            (Method::GET, "/secrets", 404),
            (Method::POST, "/metrics", 405),
        ] {
            let mut request = Request::new(());
            *request.method_mut() = method;
            *request.uri_mut() = path.parse().unwrap();
            let answer = answer(&request, &counted, Data::Here).await;
            assert_eq!(answer.status().as_u16(), status, "{path}");
        }
    }
}
