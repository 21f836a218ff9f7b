//! A receiver of traces, as a collector is one: protobuf over HTTP, kept in memory.

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use prost::Message;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What is told of a span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) name: String,
    said: BTreeMap<String, String>,
}

impl Span {
    pub(super) fn said(&self, key: &str) -> Option<&str> {
        self.said.get(key).map(String::as_str)
    }
}

/// The receiver; it ends with the test.
pub(super) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(super) async fn start() -> Result<Collector> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
        let kept = spans.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                let service = service_fn(move |request| receive(request, kept.clone()));
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(served);
            }
        });
        Ok(Collector { address, spans })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans of a trace that have come so far.
    pub(super) fn trace(&self, id: &str) -> Vec<Span> {
        let spans = self.spans.lock().unwrap();
        let of_trace = spans.iter().filter(|span| span.trace == id);
        of_trace.cloned().collect()
    }
}

async fn receive(
    request: hyper::Request<Incoming>,
    kept: Arc<Mutex<Vec<Span>>>,
) -> Result<hyper::Response<Full<bytes::Bytes>>> {
    assert_eq!(request.uri().path(), "/v1/traces");
    let body = request.into_body().collect().await?.to_bytes();
    let sent = ExportTraceServiceRequest::decode(body).context("reading traces")?;
    let scopes = sent
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    let spans = scopes.flat_map(|scope| scope.spans).map(|span| Span {
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name,
        said: span
            .attributes
            .into_iter()
            .filter_map(|pair| match pair.value?.value? {
                any_value::Value::StringValue(value) => Some((pair.key, value)),
                any_value::Value::IntValue(value) => Some((pair.key, value.to_string())),
                _ => None,
            })
            .collect(),
    });
    kept.lock().unwrap().extend(spans);
    Ok(hyper::Response::new(Full::default()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
