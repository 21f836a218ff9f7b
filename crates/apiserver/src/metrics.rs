//! What the server counts, in the OpenMetrics form, and what others in its process do.

use async_trait::async_trait;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Whoever counts something beside the server.
#[async_trait]
pub trait Counters: Send + Sync + 'static {
    /// All of it in the OpenMetrics form, without the end.
    async fn lines(&self) -> String;
}

/// What a request is counted under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) code: u16,
}

/// What a duration is measured under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct VerbLabels {
    pub(crate) verb: String,
}

/// A gauge that is one higher until this is dropped, be it by a panic.
pub(crate) struct Raised(Gauge);

impl Raised {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Raised(gauge.clone())
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The server's counters.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) seconds: Family<VerbLabels, Histogram, fn() -> Histogram>,
    pub(crate) watchers: Gauge,
    pub(crate) in_flight: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let seconds: Family<VerbLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.0005, 2.0, 16)));
        let (watchers, in_flight) = (Gauge::default(), Gauge::default());
        registry.register("apiserver_requests", "Requests answered", requests.clone());
        registry.register(
            "apiserver_request_seconds",
            "Time to answer",
            seconds.clone(),
        );
        registry.register("apiserver_watchers", "Open watches", watchers.clone());
        registry.register(
            "apiserver_requests_in_flight",
            "Requests under way",
            in_flight.clone(),
        );
        Metrics {
            registry,
            requests,
            seconds,
            watchers,
            in_flight,
        }
    }
}

impl Metrics {
    /// All counters as text, and those of another.
    pub(crate) async fn text(&self, others: Option<&dyn Counters>) -> String {
        let mut text = String::new();
        // Writing into a string has no way to fail.
        let _ = encode_registry(&mut text, &self.registry);
        if let Some(others) = others {
            text.push_str(&others.lines().await);
        }
        let _ = encode_eof(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::panic::AssertUnwindSafe;

    #[tokio::test]
    async fn a_gauge_falls_again_after_a_panic() {
        let gauge: Gauge = Gauge::default();
        let work = async {
            let _raised = Raised::new(&gauge);
            assert_eq!(gauge.get(), 0, "on purpose");
        };
        assert!(AssertUnwindSafe(work).catch_unwind().await.is_err());
        assert_eq!(gauge.get(), 0);
    }
}
