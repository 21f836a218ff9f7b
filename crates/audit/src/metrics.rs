//! What auditing counts, for Prometheus. Labels have few values, known when this was written: no name
//! of an object or a policy is one.

use crate::config::ConfigMetrics;
use muster_control::Panics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

type Word = &'static str;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: Word,
}

/// The counters of an audit.
#[derive(Clone, Debug)]
pub struct Metrics {
    evaluations: Family<OutcomeLabels, Counter>,
    seconds: Histogram,
    looks: Counter,
    reports: Family<OutcomeLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    objects: Gauge,
    pending: Gauge,
    unlisted: Gauge,
    policies: Family<StateLabels, Gauge>,
    /// The panics of all parts of the process, which are registered elsewhere.
    pub panics: Panics,
    /// The counters of the configuration audit.
    pub config: ConfigMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            evaluations: Family::default(),
            // From twenty microseconds to some ten seconds.
            seconds: Histogram::new(exponential_buckets(0.00002, 4.0, 10)),
            looks: Counter::default(),
            reports: Family::default(),
            requests: Family::default(),
            objects: Gauge::default(),
            pending: Gauge::default(),
            unlisted: Gauge::default(),
            policies: Family::default(),
            panics: Panics::default(),
            config: ConfigMetrics::default(),
        }
    }
}

impl Metrics {
    /// Counters of audits whose panics are counted with those of the process.
    pub fn counting(panics: Panics) -> Metrics {
        Metrics {
            config: ConfigMetrics::counting(panics.clone()),
            panics,
            ..Metrics::default()
        }
    }

    /// Has the counters told with others.
    pub fn register(&self, registry: &mut Registry) {
        self.config.register(registry);
        let audit = registry.sub_registry_with_prefix("audit");
        audit.register(
            "evaluations",
            "Policies asked about an object, by what they said",
            self.evaluations.clone(),
        );
        audit.register(
            "evaluation_seconds",
            "How long a policy took to say it",
            self.seconds.clone(),
        );
        audit.register(
            "looks",
            "Objects looked at, whether or not anybody had to be asked",
            self.looks.clone(),
        );
        audit.register(
            "reports",
            "Reports written, deleted, or not written for an error",
            self.reports.clone(),
        );
        audit.register(
            "requests",
            "Requests of the audit, beside watches and the lists with which they begin",
            self.requests.clone(),
        );
        audit.register(
            "objects",
            "Objects known to the audit",
            self.objects.clone(),
        );
        audit.register(
            "pending",
            "Objects and resources waiting to be looked at",
            self.pending.clone(),
        );
        audit.register(
            "unlisted_resources",
            "Resources that policies judge and that cannot be listed at the moment",
            self.unlisted.clone(),
        );
        audit.register(
            "policies",
            "Policies, by whether they are ready to judge",
            self.policies.clone(),
        );
    }

    pub(crate) fn evaluated(&self, outcome: Word, time: Duration) {
        self.evaluations
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
        self.seconds.observe(time.as_secs_f64());
    }

    pub(crate) fn looked(&self) {
        self.looks.inc();
    }

    pub(crate) fn reported(&self, outcome: Word) {
        self.reports.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    pub(crate) fn asked(&self, verb: Word) {
        self.requests.get_or_create(&RequestLabels { verb }).inc();
    }

    pub(crate) fn know(&self, objects: usize, unlisted: usize, pending: usize) {
        self.objects.set(objects as i64);
        self.unlisted.set(unlisted as i64);
        self.pending.set(pending as i64);
    }

    pub(crate) fn policies(&self, state: Word, count: usize) {
        let labels = StateLabels { state };
        self.policies.get_or_create(&labels).set(count as i64);
    }
}
