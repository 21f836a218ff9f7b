//! One job is one trace. Its id is the job's own UID, which is sixteen random bytes as a trace id
//! is, so that every process knows it after any restart and nothing has to be kept. What a span is
//! is not known here: whoever runs an operator says how spans are tied together, in the text form
//! of the W3C (`traceparent`), and does nothing where nobody looks.

use crate::message::{Job, JobKind};
use crate::news::End;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::Value;
use std::time::SystemTime;
use tracing::Span;

/// How spans are tied together.
#[derive(Clone, Copy, Debug)]
pub struct Tracer {
    /// Makes a span, which has not begun, a child of what the text names.
    pub follow: fn(&Span, &str),
    /// Names a span; nothing where it is not kept.
    pub name: fn(&Span) -> Option<String>,
    /// Keeps the span of a whole job.
    pub keep: fn(JobSpan),
}

impl Default for Tracer {
    fn default() -> Self {
        Tracer {
            follow: |_, _| {},
            name: |_| None,
            keep: |_| {},
        }
    }
}

/// The span of a whole job, above all others of its trace.
#[derive(Clone, Debug)]
pub struct JobSpan {
    /// Its own name.
    pub traceparent: String,
    /// The kind of the job.
    pub kind: &'static str,
    /// Where the job is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// The Registry it is about.
    pub registry: String,
    /// When it began.
    pub from: SystemTime,
    /// When it ended.
    pub to: SystemTime,
    /// Why it ended.
    pub reason: String,
    /// What went wrong, if something did.
    pub failure: Option<String>,
}

/// The name of a job's own span; nothing if its UID is not one.
pub(crate) fn of_job(uid: &str) -> Option<String> {
    let trace = uid.replace('-', "").to_ascii_lowercase();
    let is_id = trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit());
    let span = trace.get(..16).filter(|_| is_id)?;
    let is_zero = |id: &str| id.bytes().all(|byte| byte == b'0');
    (!is_zero(span)).then(|| format!("00-{trace}-{span}-01"))
}

/// What the work of a message belongs to: the span that sent it, if that is of the same job.
pub(crate) fn parent(sender: Option<&str>, job: &Job) -> Option<String> {
    let own = of_job(&job.uid)?;
    let is_of_job = |sender: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        sender.len() == own.len()
            && sender.get(..36) == own.get(..36)
            && sender.bytes().all(is_plain)
    };
    Some(sender.filter(is_of_job).map_or(own.clone(), str::to_owned))
}

/// Keeps the span of a job that has ended.
pub(crate) fn keep_job(
    tracer: Tracer,
    kind: JobKind,
    object: &DynamicObject,
    status: &Value,
    end: End,
) {
    let metadata = &object.metadata;
    let Some(traceparent) = of_job(metadata.uid.as_deref().unwrap_or_default()) else {
        return;
    };
    let time = |field: &str| -> Option<SystemTime> {
        let time: Timestamp = status[field].as_str()?.parse().ok()?;
        Some(time.into())
    };
    let now = SystemTime::now();
    let created = metadata.creation_timestamp.as_ref();
    let created = created.map_or(now, |created| created.0.into());
    (tracer.keep)(JobSpan {
        traceparent,
        kind: kind.object().kind,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        registry: object.data["spec"]["registry"]
            .as_str()
            .unwrap_or_default()
            .into(),
        from: time("startTime").or(time("startedAt")).unwrap_or(created),
        to: now,
        reason: end.reason,
        failure: end.failure,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_one_trace_whoever_asks() {
        let uid = "0B8C9F1e-6c5d-4f3a-9b2e-1d7c8a6f5e4d";
        let own = "00-0b8c9f1e6c5d4f3a9b2e1d7c8a6f5e4d-0b8c9f1e6c5d4f3a-01";
        assert_eq!(of_job(uid).as_deref(), Some(own));
        for uid in [
            "",
            "x",
            "00000000-0000-0000-0000-000000000000",
            &"g".repeat(32),
        ] {
            assert_eq!(of_job(uid), None, "{uid}");
        }
        let job = Job {
            kind: JobKind::ScanJob,
            namespace: "default".into(),
            name: "nightly".into(),
            uid: uid.into(),
        };
        let sender = "00-0b8c9f1e6c5d4f3a9b2e1d7c8a6f5e4d-00f067aa0ba902b7-01";
        let strange = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (given, parent) in [
            (None, own),
            (Some(sender), sender),
            (Some(strange), own),
            (Some("rubbish"), own),
        ] {
            assert_eq!(super::parent(given, &job).as_deref(), Some(parent));
        }
    }
}
