//! Traces as OpenTelemetry has them, sent as protobuf over HTTP to whoever the environment names in
//! its standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin); to nobody otherwise. They are
//! sent from threads of their own: a receiver that is slow or gone costs traces and nothing else.

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bytes::Bytes;
use muster_operator::{JobSpan, Tracer};
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use std::cell::Cell;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::Span;
use tracing::Subscriber;
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::registry::LookupSpan;

/// What a receiver may take to answer, and how long the end waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer of a receiver that is read.
const LARGEST: usize = 64 * 1024;

/// Traces that are being sent.
pub(super) struct Traces {
    provider: SdkTracerProvider,
    runtime: Runtime,
}

/// Begins to send, if somebody is named who takes it.
pub(super) fn start() -> Result<Option<Traces>> {
    if !is_wanted(|name| std::env::var(name).ok()) {
        return Ok(None);
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("traces")
        .enable_all()
        .build()
        .context("starting the runtime of traces")?;
    let client = reqwest::Client::builder().timeout(PATIENCE).build();
    let sender = Sender {
        client: client.context("preparing to send traces")?,
        runtime: runtime.handle().clone(),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(sender)
        .build()
        .context("preparing to send traces as the variables OTEL_EXPORTER_OTLP_* say; they are sent as http/protobuf")?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("muster");
    }
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        // A trace's id is its job's UID, which is not drawn evenly; collectors can thin out.
        .with_sampler(opentelemetry_sdk::trace::Sampler::AlwaysOn)
        .with_id_generator(Ids::default())
        .with_resource(resource.with_attribute(version).build())
        .build();
    // For whole jobs; spans of code come through the subscriber.
    opentelemetry::global::set_tracer_provider(provider.clone());
    Ok(Some(Traces { provider, runtime }))
}

/// Whether the environment names a receiver, and nobody says that nothing is to be sent.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let is_off = given("OTEL_SDK_DISABLED").is_some_and(|value| value == "true")
        || given("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
    let endpoint = given("OTEL_EXPORTER_OTLP_ENDPOINT");
    !is_off
        && endpoint
            .or_else(|| given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
            .is_some()
}

impl Traces {
    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, opentelemetry_sdk::trace::SdkTracer>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("muster"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
    }

    /// Sends what is left, if that does not take too long.
    pub(super) fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "sending the last traces");
        }
        self.runtime.shutdown_background();
    }
}

/// Sends by the HTTP client of the process.
#[derive(Debug)]
struct Sender {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = self.client.request(parts.method, parts.uri.to_string());
        let request = request.headers(parts.headers).body(body);
        // Whoever calls has no runtime of this kind.
        let sent = self.runtime.spawn(async move {
            let mut response = request.send().await?;
            let mut whole = Vec::new();
            while let Some(piece) = response.chunk().await? {
                if whole.len() + piece.len() > LARGEST {
                    break;
                }
                whole.extend_from_slice(&piece);
            }
            let mut answer = http::Response::new(Bytes::from(whole));
            *answer.status_mut() = response.status();
            *answer.headers_mut() = response.headers().clone();
            Ok::<_, reqwest::Error>(answer)
        });
        Ok(sent.await??)
    }
}

thread_local! {
    /// What the next span of this thread is to be called.
    static CHOSEN: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// Random names, except for spans whose name follows from what they are about.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        let chosen = CHOSEN.get().map(|(trace, _)| trace);
        chosen.unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        let chosen = CHOSEN.get().map(|(_, span)| span);
        chosen.unwrap_or_else(|| self.0.new_span_id())
    }
}

/// How spans are tied together.
pub(super) fn tracer() -> Tracer {
    Tracer { follow, name, keep }
}

fn follow(span: &Span, parent: &str) {
    if let Some((trace, id)) = read(parent) {
        let parent = SpanContext::new(trace, id, TraceFlags::SAMPLED, true, TraceState::default());
        // Refused only where spans are not kept.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

fn name(span: &Span) -> Option<String> {
    let context = span.context();
    let span = context.span();
    let known = span.span_context();
    let flags = known.trace_flags().to_u8();
    known
        .is_valid()
        .then(|| format!("00-{}-{}-{flags:02x}", known.trace_id(), known.span_id()))
}

/// The ids of a `traceparent`.
fn read(text: &str) -> Option<(TraceId, SpanId)> {
    let mut parts = text.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let is_valid = trace != TraceId::INVALID && span != SpanId::INVALID;
    is_valid.then_some((trace, span))
}

fn keep(job: JobSpan) {
    let Some(ids) = read(&job.traceparent) else {
        return;
    };
    let tracer = opentelemetry::global::tracer("muster");
    let builder = tracer
        .span_builder(job.kind)
        .with_start_time(job.from)
        .with_attributes([
            KeyValue::new("namespace", job.namespace),
            KeyValue::new("job", job.name),
            KeyValue::new("registry", job.registry),
            KeyValue::new("outcome", job.reason),
        ]);
    CHOSEN.set(Some(ids));
    let mut span = tracer.build_with_context(builder, &Context::new());
    CHOSEN.set(None);
    if let Some(failure) = job.failure {
        span.set_status(Status::error(failure));
    }
    span.end_with_timestamp(job.to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_sent_only_to_whom_the_environment_names() {
        let (endpoint, own) = (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        );
        let (off, exporter) = ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER");
        for (variables, wanted) in [
            (vec![], false),
            (vec![(endpoint, "")], false),
            (vec![(endpoint, "http://collector:4318")], true),
            (vec![(own, "http://collector:4318/v1/traces")], true),
            (
                vec![(endpoint, "http://collector:4318"), (off, "true")],
                false,
            ),
            (
                vec![(endpoint, "http://collector:4318"), (exporter, "none")],
                false,
            ),
            (
                vec![(endpoint, "http://collector:4318"), (exporter, "otlp")],
                true,
            ),
        ] {
            let variable = |name: &str| {
                let mut given = variables.iter().filter(|(known, _)| *known == name);
                given.next().map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_wanted(variable), wanted, "{variables:?}");
        }
    }

    #[test]
    fn a_traceparent_is_read_or_refused() {
        let good = "00-0b8c9f1e6c5d4f3a9b2e1d7c8a6f5e4d-0b8c9f1e6c5d4f3a-01";
        assert!(read(good).is_some());
        let zeros = format!("00-{}-{}-01", "0".repeat(32), "0".repeat(16));
        for bad in ["", "00", "00-x-y-01", zeros.as_str()] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
