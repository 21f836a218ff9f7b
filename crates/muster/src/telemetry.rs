//! What the process says while it works: lines on stderr, and, where somebody is named who takes
//! them, traces. The lines are the same with traces and without.

use muster_operator::Tracer;
use std::io::IsTerminal;
use tracing::Metadata;
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

#[cfg(feature = "traces")]
mod traces;

/// What was started, and has to be ended.
#[derive(Default)]
pub(crate) struct Telemetry {
    #[cfg(feature = "traces")]
    traces: Option<traces::Traces>,
}

/// Whether something is a span of ours; those are for traces, and in no line.
fn is_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("muster")
}

/// Begins to speak; `sends` says whether the command is one whose traces are sent.
pub(crate) fn start(filter: EnvFilter, sends: bool) -> Telemetry {
    let colours = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let lines = lines.with_filter(filter.and(filter_fn(|metadata| !is_span(metadata))));
    let subscriber = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "traces")]
    if sends
        && let Some(traces) = traces::start().unwrap_or_else(|error| {
            // Whoever cannot be watched works all the same.
            eprintln!("warning: no traces are sent: {error:#}");
            None
        })
    {
        let layer = traces.layer().with_filter(filter_fn(is_span));
        subscriber.with(layer).init();
        return Telemetry {
            traces: Some(traces),
        };
    }
    let _ = sends;
    subscriber.init();
    Telemetry::default()
}

impl Telemetry {
    /// Sends what is left.
    pub(crate) fn end(self) {
        #[cfg(feature = "traces")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// How spans are tied together.
pub(crate) fn tracer() -> Tracer {
    #[cfg(feature = "traces")]
    return traces::tracer();
    #[cfg(not(feature = "traces"))]
    Tracer::default()
}
