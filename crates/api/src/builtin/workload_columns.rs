//! The columns of what makes pods: replicas wanted and there, and with `-o wide` the containers,
//! images and selector. Objects are stored without defaults, so a missing number of replicas is
//! shown as the one it stands for.

use super::cell::{
    age_column, condition, entries, integer_column, items, joined, labels, number, selector,
    selector_or_none, since, text, text_column, text_or,
};
use jiff::Timestamp;
use muster_kind::{Column, time};
use serde_json::Value;

fn desired(object: &Value) -> i64 {
    object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1)
}

fn ready(object: &Value) -> Value {
    format!(
        "{}/{}",
        number(object, "/status/readyReplicas"),
        desired(object)
    )
    .into()
}

/// The wide columns for a pod template at `/spec/template`.
fn template() -> [Column; 2] {
    [
        text_column("Containers", |o| {
            joined(items(o, "/spec/template/spec/containers"), "/name").into()
        })
        .wide()
        .describe("The containers' names."),
        text_column("Images", |o| {
            joined(items(o, "/spec/template/spec/containers"), "/image").into()
        })
        .wide()
        .describe("The containers' images."),
    ]
}

fn selector_column() -> Column {
    text_column("Selector", |o| selector_or_none(o, "/spec/selector"))
        .wide()
        .describe("Which pods belong to it.")
}

pub(super) fn deployment() -> Vec<Column> {
    let mut columns = vec![
        text_column("Ready", ready).describe("Ready pods of all."),
        text_column("Up-to-date", |o| {
            number(o, "/status/updatedReplicas").into()
        })
        .describe("Pods made from the present template."),
        text_column("Available", |o| {
            number(o, "/status/availableReplicas").into()
        })
        .describe("Pods ready for long enough."),
        age_column(),
    ];
    columns.extend(template());
    // The one kind that shows a selector for everything as nothing at all.
    columns.push(
        text_column("Selector", |o| selector(o.pointer("/spec/selector")).into())
            .wide()
            .describe("Which pods belong to it."),
    );
    columns
}

fn replicas() -> Vec<Column> {
    let mut columns = vec![
        integer_column("Desired", |o| desired(o).into()).describe("Pods wanted."),
        integer_column("Current", |o| number(o, "/status/replicas").into()).describe("Pods there."),
        integer_column("Ready", |o| number(o, "/status/readyReplicas").into())
            .describe("Pods ready."),
        age_column(),
    ];
    columns.extend(template());
    columns
}

pub(super) fn replica_set() -> Vec<Column> {
    let mut columns = replicas();
    columns.push(selector_column());
    columns
}

pub(super) fn replication_controller() -> Vec<Column> {
    let mut columns = replicas();
    columns.push(
        text_column("Selector", |o| labels(entries(o, "/spec/selector")))
            .wide()
            .describe("Which pods belong to it."),
    );
    columns
}

pub(super) fn stateful_set() -> Vec<Column> {
    let mut columns = vec![
        text_column("Ready", ready).describe("Ready pods of all."),
        age_column(),
    ];
    columns.extend(template());
    columns
}

pub(super) fn daemon_set() -> Vec<Column> {
    let mut columns = vec![
        integer_column("Desired", |o| {
            number(o, "/status/desiredNumberScheduled").into()
        })
        .describe("Nodes that should run a pod."),
        integer_column("Current", |o| {
            number(o, "/status/currentNumberScheduled").into()
        })
        .describe("Nodes that run a pod and should."),
        integer_column("Ready", |o| number(o, "/status/numberReady").into())
            .describe("Nodes with a ready pod."),
        integer_column("Up-to-date", |o| {
            number(o, "/status/updatedNumberScheduled").into()
        })
        .describe("Nodes with a pod made from the present template."),
        integer_column("Available", |o| number(o, "/status/numberAvailable").into())
            .describe("Nodes with a pod ready for long enough."),
        text_column("Node Selector", |o| {
            labels(entries(o, "/spec/template/spec/nodeSelector"))
        })
        .describe("Which nodes run a pod."),
        age_column(),
    ];
    columns.extend(template());
    columns.push(selector_column());
    columns
}

pub(super) fn job() -> Vec<Column> {
    let mut columns = vec![
        text_column("Status", job_status).describe("How far the job is."),
        text_column("Completions", job_completions)
            .describe("Pods that succeeded, of those needed."),
        text_column("Duration", job_duration).describe("How long the job took, or takes so far."),
        age_column(),
    ];
    columns.extend(template());
    columns.push(selector_column());
    columns
}

fn job_status(job: &Value) -> Value {
    let first = |types: &[&'static str]| types.iter().find(|of| condition(job, of)).copied();
    let deleted = job
        .pointer("/metadata/deletionTimestamp")
        .map(|_| "Terminating");
    first(&["Complete", "Failed"])
        .or(deleted)
        .or_else(|| first(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]))
        .unwrap_or("Running")
        .into()
}

fn job_completions(job: &Value) -> Value {
    let succeeded = number(job, "/status/succeeded");
    let parallelism = job.pointer("/spec/parallelism").and_then(Value::as_i64);
    // With neither number given, Kubernetes takes both as 1.
    let completions = match job.pointer("/spec/completions").and_then(Value::as_i64) {
        None if parallelism.is_none() => Some(1),
        completions => completions,
    };
    match (completions, parallelism.unwrap_or(1)) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
    .into()
}

fn job_duration(job: &Value) -> Value {
    let at = |pointer: &str| text(job, pointer).parse::<Timestamp>().ok();
    let Some(start) = at("/status/startTime") else {
        return "".into();
    };
    let end = at("/status/completionTime").unwrap_or_else(Timestamp::now);
    time::human(end.as_second() - start.as_second()).into()
}

pub(super) fn cron_job() -> Vec<Column> {
    vec![
        text_column("Schedule", |o| text(o, "/spec/schedule").into()).describe("When jobs start."),
        text_column("Timezone", |o| text_or(o, "/spec/timeZone", "<none>"))
            .describe("The time zone of the schedule."),
        Column::computed("Suspend", "boolean", |o| {
            let suspended = o.pointer("/spec/suspend").is_some_and(|v| *v == true);
            if suspended {
                "True".into()
            } else {
                "False".into()
            }
        })
        .describe("Whether no jobs are started."),
        integer_column("Active", |o| items(o, "/status/active").len().into())
            .describe("Jobs that run now."),
        text_column("Last Schedule", |o| {
            match o.pointer("/status/lastScheduleTime") {
                None | Some(Value::Null) => "<none>".into(),
                then => since(then).into(),
            }
        })
        .describe("How long ago a job was last started."),
        age_column(),
        text_column("Containers", |o| {
            joined(
                items(o, "/spec/jobTemplate/spec/template/spec/containers"),
                "/name",
            )
            .into()
        })
        .wide()
        .describe("The containers' names."),
        text_column("Images", |o| {
            joined(
                items(o, "/spec/jobTemplate/spec/template/spec/containers"),
                "/image",
            )
            .into()
        })
        .wide()
        .describe("The containers' images."),
        text_column("Selector", |o| {
            selector_or_none(o, "/spec/jobTemplate/spec/selector")
        })
        .wide()
        .describe("Which pods belong to a job."),
    ]
}
