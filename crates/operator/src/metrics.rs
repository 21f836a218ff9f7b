//! What scanning counts. Whoever runs an operator makes the [`Metrics`] and hands them over; they
//! are written as text when somebody asks. Labels have few values, known when this was written:
//! no name of an image, a job or a registry is one.

use crate::message::JobKind;
use muster_control::Panics;
use muster_registry::Counts;
use muster_scan::report::Summary;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is answered when metrics are asked for.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Word = &'static str;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    kind: Word,
    reason: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    kind: Word,
    state: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageEndLabels {
    stage: Word,
    outcome: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SeverityLabels {
    severity: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    subject: Word,
    state: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: Word,
    code: Word,
}

/// What became of one try of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageOutcome {
    Done,
    Failed,
    Retried,
}

impl StageOutcome {
    pub(crate) fn word(self) -> Word {
        match self {
            StageOutcome::Done => "done",
            StageOutcome::Failed => "failed",
            StageOutcome::Retried => "retried",
        }
    }
}

/// The counters of an operator or a worker.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    traffic: Traffic,
    ended: Family<EndLabels, Counter>,
    jobs: Family<JobLabels, Gauge>,
    stages: Family<StageEndLabels, Counter>,
    seconds: Family<StageLabels, Histogram, fn() -> Histogram>,
    images: Family<OutcomeLabels, Counter>,
    reports: Family<OutcomeLabels, Counter>,
    findings: Family<SeverityLabels, Counter>,
    data: Gauge,
    updates: Family<OutcomeLabels, Counter>,
    hubs: Family<OutcomeLabels, Counter>,
    queue: Family<QueueLabels, Gauge>,
    leading: Gauge,
    panics: Panics,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new(Panics::default())
    }
}

impl Metrics {
    fn new(panics: Panics) -> Self {
        let mut registry = Registry::with_prefix("muster");
        let traffic = Traffic::default();
        let metrics = Metrics {
            traffic: traffic.clone(),
            ended: Family::default(),
            jobs: Family::default(),
            stages: Family::default(),
            seconds: Family::new_with_constructor(|| {
                // From ten milliseconds to three quarters of an hour.
                Histogram::new(exponential_buckets(0.01, 3.0, 12))
            }),
            images: Family::default(),
            reports: Family::default(),
            findings: Family::default(),
            data: Gauge::default(),
            updates: Family::default(),
            hubs: Family::default(),
            queue: Family::default(),
            leading: Gauge::default(),
            panics,
            registry: Registry::default(),
        };
        let to = &mut registry;
        to.register("jobs_ended", "Jobs that ended", metrics.ended.clone());
        to.register("jobs", "Jobs that have not ended", metrics.jobs.clone());
        let (help, stages) = ("Tries of a stage that ended", metrics.stages.clone());
        to.register("stages_ended", help, stages);
        let (help, seconds) = ("How long a stage worked", metrics.seconds.clone());
        to.register_with_unit("stage_duration", help, Unit::Seconds, seconds);
        let (help, images) = ("Images whose bill was wanted", metrics.images.clone());
        to.register("images", help, images);
        let (help, reports) = ("Bills whose report was wanted", metrics.reports.clone());
        to.register("reports", help, reports);
        let (help, findings) = ("Findings in the reports made", metrics.findings.clone());
        to.register("findings", help, findings);
        to.register_with_unit(
            "vulnerability_data_timestamp",
            "When the vulnerability data in use was made; 0 without any or without a date",
            Unit::Seconds,
            metrics.data.clone(),
        );
        let (help, updates) = ("Updates of vulnerability data", metrics.updates.clone());
        to.register("vulnerability_data_updates", help, updates);
        let (help, hubs) = ("Fetches of VEX hubs", metrics.hubs.clone());
        to.register("vex_hub_fetches", help, hubs);
        let (help, queue) = ("Messages in the queue", metrics.queue.clone());
        to.register("queue_messages", help, queue);
        let (help, leading) = (
            "Whether this process decides what is done",
            metrics.leading.clone(),
        );
        to.register("leader", help, leading);
        metrics.panics.register(to);
        to.register_collector(Box::new(traffic));
        Metrics {
            registry,
            ..metrics
        }
    }

    /// A job came to its end.
    pub(crate) fn ended(&self, kind: JobKind, reason: &str) {
        let (kind, reason) = (kind.object().kind, known_reason(reason));
        self.ended.get_or_create(&EndLabels { kind, reason }).inc();
    }

    /// So many jobs of a kind work, and so many wait.
    pub(crate) fn jobs(&self, kind: JobKind, running: usize, waiting: usize) {
        let kind = kind.object().kind;
        for (state, count) in [("running", running), ("waiting", waiting)] {
            let gauge = self.jobs.get_or_create(&JobLabels { kind, state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A stage was tried.
    pub(crate) fn stage(&self, stage: Word, outcome: StageOutcome, took: Duration) {
        let seconds = self.seconds.get_or_create(&StageLabels { stage });
        seconds.observe(took.as_secs_f64());
        let outcome = outcome.word();
        let labels = StageEndLabels { stage, outcome };
        self.stages.get_or_create(&labels).inc();
    }

    /// An image had to be read for its bill, or the bill that is there is good.
    pub(crate) fn image(&self, read: bool) {
        let outcome = if read { "read" } else { "unchanged" };
        self.images.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A report that the same data made is good.
    pub(crate) fn report_kept(&self) {
        let outcome = "unchanged";
        self.reports.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A report was made.
    pub(crate) fn report_made(&self, summary: &Summary) {
        let outcome = "matched";
        self.reports.get_or_create(&OutcomeLabels { outcome }).inc();
        for (severity, count) in [
            ("critical", summary.critical),
            ("high", summary.high),
            ("medium", summary.medium),
            ("low", summary.low),
            ("unknown", summary.unknown),
            ("suppressed", summary.suppressed),
        ] {
            let labels = SeverityLabels { severity };
            self.findings.get_or_create(&labels).inc_by(count);
        }
    }

    /// Since when the vulnerability data is as it is.
    pub(crate) fn data(&self, made: i64) {
        self.data.set(made);
    }

    /// Vulnerability data was looked for.
    pub(crate) fn updated(&self, outcome: Word) {
        self.updates.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A VEX hub was looked for.
    pub(crate) fn hub(&self, outcome: Word) {
        self.hubs.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// How much there is to do; a queue that does not answer has no number.
    pub(crate) fn queue(&self, subject: Word, depth: Option<muster_queue::Depth>) {
        let states = ["waiting", "running", "dead"];
        let Some(depth) = depth else {
            for state in states {
                self.queue.remove(&QueueLabels { subject, state });
            }
            return;
        };
        let counts = [depth.waiting, depth.running, depth.dead];
        for (state, count) in states.into_iter().zip(counts) {
            let gauge = self.queue.get_or_create(&QueueLabels { subject, state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// The panics of all parts of the process.
    pub(crate) fn panics(&self) -> &Panics {
        &self.panics
    }

    /// This process decides now, or no longer.
    pub(crate) fn leads(&self, leads: bool) {
        self.leading.set(i64::from(leads));
    }

    /// What was asked of registries so far.
    pub(crate) fn traffic(&self, counts: Counts) {
        let mut known = self
            .traffic
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = counts;
    }

    /// Everything as text.
    pub fn text(&self) -> String {
        let mut text = self.lines();
        // Writing into a string has no way to fail.
        let _ = encode_eof(&mut text);
        text
    }

    /// Metrics with those of other parts of the process. `panics` is shared by all of them.
    pub fn with(panics: Panics, others: impl FnOnce(&mut Registry)) -> Self {
        let mut metrics = Metrics::new(panics);
        others(&mut metrics.registry);
        metrics
    }

    /// As [`Metrics::text`], without the end, so that others can add theirs.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let _ = encode_registry(&mut text, &self.registry);
        text
    }
}

/// Reasons that a status can tell are our own words; others are one.
fn known_reason(reason: &str) -> Word {
    const REASONS: [Word; 9] = [
        "AllImagesScanned",
        "NoImagesToScan",
        "RegistryNotFound",
        "InternalError",
        "DiscoveryFinished",
        "DiscoveryFailed",
        "DiscoveryCanceled",
        "FailedToRequestDiscovery",
        "Other",
    ];
    let known = REASONS.iter().find(|known| **known == reason);
    known.copied().unwrap_or("Other")
}

/// What registries were asked, as it was last told; counted elsewhere.
#[derive(Clone, Debug, Default)]
struct Traffic(Arc<Mutex<Counts>>);

impl Collector for Traffic {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, help) = ("registry_requests", "Requests to registries");
        let mut requests = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (method, code, count) in &counts.requests {
            let (method, code) = (*method, *code);
            let labels = RequestLabels { method, code };
            ConstCounter::new(*count).encode(requests.encode_family(&labels)?)?;
        }
        let mut number = |name, help, unit: Option<&Unit>, count| {
            let number = ConstCounter::new(count);
            let to = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
            number.encode(to)
        };
        let (name, help) = ("registry_read", "What registries answered");
        number(name, help, Some(&Unit::Bytes), counts.bytes)?;
        let (name, help) = ("registry_retries", "Requests to registries tried again");
        number(name, help, None, counts.retries)?;
        let (name, help) = (
            "registry_throttled",
            "Times that a host wanted to be left alone and was waited for",
        );
        number(name, help, None, counts.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_queue::Depth;

    #[test]
    fn what_was_counted_is_told_with_its_unit_and_labels() {
        let metrics = Metrics::default();
        metrics.ended(JobKind::ScanJob, "AllImagesScanned");
        metrics.ended(JobKind::ScanJob, "somebody's own words");
        metrics.jobs(JobKind::RegistryDiscovery, 2, 1);
        let took = Duration::from_millis(1500);
        metrics.stage("generate", StageOutcome::Done, took);
        metrics.stage("generate", StageOutcome::Retried, took);
        metrics.image(true);
        metrics.image(false);
        metrics.report_kept();
        metrics.report_made(&Summary {
            critical: 2,
            suppressed: 1,
            ..Summary::default()
        });
        metrics.data(1_700_000_000);
        metrics.updated("updated");
        metrics.hub("failed");
        let depth = Depth {
            waiting: 3,
            running: 2,
            dead: 1,
        };
        metrics.queue("sbomscanner.sbom.scan", Some(depth));
        metrics.queue("sbomscanner.sbom.generate", Some(depth));
        metrics.queue("sbomscanner.sbom.generate", None);
        metrics.leads(true);
        metrics.traffic(Counts {
            requests: vec![("GET", "2xx", 7), ("HEAD", "4xx", 1)],
            bytes: 4096,
            retries: 5,
            waits: 6,
        });
        let text = metrics.text();
        for line in [
            "muster_jobs_ended_total{kind=\"ScanJob\",reason=\"AllImagesScanned\"} 1",
            "muster_jobs_ended_total{kind=\"ScanJob\",reason=\"Other\"} 1",
            "muster_jobs{kind=\"RegistryDiscovery\",state=\"running\"} 2",
            "muster_jobs{kind=\"RegistryDiscovery\",state=\"waiting\"} 1",
            "muster_stages_ended_total{stage=\"generate\",outcome=\"done\"} 1",
            "muster_stages_ended_total{stage=\"generate\",outcome=\"retried\"} 1",
            "muster_stage_duration_seconds_sum{stage=\"generate\"} 3.0",
            "muster_stage_duration_seconds_count{stage=\"generate\"} 2",
            "muster_images_total{outcome=\"read\"} 1",
            "muster_images_total{outcome=\"unchanged\"} 1",
            "muster_reports_total{outcome=\"matched\"} 1",
            "muster_reports_total{outcome=\"unchanged\"} 1",
            "muster_findings_total{severity=\"critical\"} 2",
            "muster_findings_total{severity=\"suppressed\"} 1",
            "muster_vulnerability_data_timestamp_seconds 1700000000",
            "muster_vulnerability_data_updates_total{outcome=\"updated\"} 1",
            "muster_vex_hub_fetches_total{outcome=\"failed\"} 1",
            "muster_queue_messages{subject=\"sbomscanner.sbom.scan\",state=\"dead\"} 1",
            "muster_leader 1",
            "muster_registry_requests_total{method=\"GET\",code=\"2xx\"} 7",
            "muster_registry_read_bytes_total 4096",
            "muster_registry_retries_total 5",
            "muster_registry_throttled_total 6",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}\n{text}");
        }
        assert!(!text.contains("sbom.generate"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert!(!metrics.lines().contains("# EOF"));
    }
}
