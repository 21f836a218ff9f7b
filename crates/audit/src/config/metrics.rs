//! What the configuration audit counts, for Prometheus. Labels are kinds and a few words, never names.

use muster_control::Panics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Word = &'static str;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequeueLabels {
    kind: String,
    delayed: Word,
}

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

/// The counters of a configuration audit.
#[derive(Clone, Debug, Default)]
pub struct ConfigMetrics {
    /// The panics of all parts of the process, which are registered elsewhere.
    pub panics: Panics,
    evaluations: Family<KindLabels, Counter>,
    requeues: Family<RequeueLabels, Counter>,
    reports: Family<OutcomeLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    policies: Family<StateLabels, Gauge>,
    unlisted: Gauge,
    kept: Gauge,
    pending: Gauge,
}

impl ConfigMetrics {
    /// Counters whose panics are counted with those of the process.
    pub fn counting(panics: Panics) -> ConfigMetrics {
        ConfigMetrics {
            panics,
            ..ConfigMetrics::default()
        }
    }

    /// Has the counters told with others.
    pub fn register(&self, registry: &mut Registry) {
        let audit = registry.sub_registry_with_prefix("config_audit");
        audit.register(
            "evaluations",
            "Policies asked about an object, by its kind",
            self.evaluations.clone(),
        );
        audit.register(
            "requeues",
            "Kinds to be looked at again because no policy is about them, at once or later",
            self.requeues.clone(),
        );
        audit.register(
            "reports",
            "Reports written, deleted, not written for an error, or left to somebody else",
            self.reports.clone(),
        );
        audit.register(
            "requests",
            "Requests of the audit, beside watches and the lists with which they begin",
            self.requests.clone(),
        );
        audit.register(
            "policies",
            "Policies and libraries: in force, refused, or refused with an older version in force",
            self.policies.clone(),
        );
        audit.register(
            "unlisted",
            "Resources that policies are about and that cannot be listed",
            self.unlisted.clone(),
        );
        audit.register("objects", "Objects that have a report", self.kept.clone());
        audit.register(
            "pending",
            "Objects and resources waiting to be looked at",
            self.pending.clone(),
        );
    }

    pub(super) fn evaluated(&self, kind: &str, policies: usize) {
        let kind = kind.into();
        self.evaluations
            .get_or_create(&KindLabels { kind })
            .inc_by(policies as u64);
    }

    pub(super) fn requeued(&self, kind: &str, is_delayed: bool) {
        let labels = RequeueLabels {
            kind: kind.into(),
            delayed: if is_delayed { "true" } else { "false" },
        };
        self.requeues.get_or_create(&labels).inc();
    }

    pub(super) fn reported(&self, outcome: Word) {
        self.reports.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    pub(super) fn asked(&self, verb: Word) {
        self.requests.get_or_create(&RequestLabels { verb }).inc();
    }

    pub(super) fn policies(&self, state: Word, count: usize) {
        let labels = StateLabels { state };
        self.policies.get_or_create(&labels).set(count as i64);
    }

    pub(super) fn unlisted(&self, count: usize) {
        self.unlisted.set(count as i64);
    }

    pub(super) fn know(&self, reports: usize, pending: usize) {
        self.kept.set(reports as i64);
        self.pending.set(pending as i64);
    }
}
