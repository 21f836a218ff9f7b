//! One message handled: its stage does its work within its time, in a span of its own, and what came
//! of it is counted. What a failure means for the image or the job is written down before the
//! message is given up.

use crate::message::{CATALOG, GENERATE, Job, Message, REMATCH, Rematch};
use crate::metrics::StageOutcome;
use crate::patience::PATIENCE;
use crate::trace;
use crate::work::{Operator, Trouble, WORKER};
use crate::{bill, catalog, findings};
use muster_queue::{Failure, Job as Delivery};
use std::sync::Arc;
use std::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// Handles a message.
pub(crate) async fn handle(operator: Arc<Operator>, delivery: Delivery) -> Result<(), Failure> {
    let stage = word(&delivery.subject);
    let begun = Instant::now();
    let done = match delivery.subject.as_str() {
        REMATCH => match_again(&operator, &delivery).await,
        _ => work(&operator, &delivery, stage).await,
    };
    let outcome = outcome(done.as_ref().err(), delivery.last);
    operator.metrics().stage(stage, outcome, begun.elapsed());
    done
}

/// What the stage of a subject is called.
fn word(subject: &str) -> &'static str {
    match subject {
        CATALOG => "catalog",
        GENERATE => "generate",
        REMATCH => "rematch",
        _ => "scan",
    }
}

fn outcome(failure: Option<&Failure>, last: bool) -> StageOutcome {
    match failure {
        None => StageOutcome::Done,
        Some(Failure::Transient { .. }) if !last => StageOutcome::Retried,
        Some(_) => StageOutcome::Failed,
    }
}

/// A span of a job's trace, which belongs to whatever sent its message.
pub(crate) fn span(
    operator: &Operator,
    stage: &'static str,
    job: &Job,
    sender: Option<&str>,
) -> Span {
    let span = tracing::info_span!(
        "stage",
        otel.name = stage,
        stage,
        namespace = job.namespace,
        job = job.name,
        registry = Empty,
        image = Empty,
        attempt = Empty,
        outcome = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    if let Some(parent) = trace::parent(sender, job) {
        (operator.tracer().follow)(&span, &parent);
    }
    span
}

async fn work(
    operator: &Operator,
    delivery: &Delivery,
    stage: &'static str,
) -> Result<(), Failure> {
    let message: Message = serde_json::from_slice(&delivery.payload)
        .map_err(|error| Trouble::permanent(error).into_failure())?;
    let span = span(
        operator,
        stage,
        &message.job,
        message.traceparent.as_deref(),
    );
    span.record("attempt", delivery.attempt);
    if let Some(image) = &message.image {
        span.record("image", image);
    }
    let work = || {
        operator.catch(WORKER, stage, async {
            match delivery.subject.as_str() {
                CATALOG => catalog::create(operator, &message.job, delivery.last).await,
                GENERATE => bill::generate(operator, &message).await,
                _ => findings::scan(operator, &message).await,
            }
        })
    };
    let done = PATIENCE.work(work).instrument(span.clone()).await;
    let done = match done {
        Ok(()) => Ok(()),
        Err(trouble) => Err(give_up(operator, delivery, &message, trouble).await),
    };
    tell(&span, done.as_ref().err(), delivery.last);
    done
}

/// Says what came of a stage in its span.
fn tell(span: &Span, failure: Option<&Failure>, last: bool) {
    span.record("outcome", outcome(failure, last).word());
    if let Some(Failure::Permanent { reason } | Failure::Transient { reason, .. }) = failure {
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", reason);
    }
}

/// Writes down what a failure means, if nobody will try again.
async fn give_up(
    operator: &Operator,
    delivery: &Delivery,
    message: &Message,
    trouble: Trouble,
) -> Failure {
    let (job, image) = (&message.job, message.image.as_deref());
    tracing::warn!(job = job.name, image, attempt = delivery.attempt, %trouble, "a stage failed");
    if trouble.is_permanent() || delivery.last {
        let why = trouble.to_string();
        let recorded = PATIENCE.work(|| operator.record(job, image, &why));
        if let Err(other) = recorded.await {
            return other.into_failure();
        }
    }
    trouble.into_failure()
}

/// A report that cannot be made again stays as it was.
async fn match_again(operator: &Operator, delivery: &Delivery) -> Result<(), Failure> {
    let message: Rematch = serde_json::from_slice(&delivery.payload)
        .map_err(|error| Trouble::permanent(error).into_failure())?;
    let span = tracing::info_span!(
        "stage",
        otel.name = "rematch",
        stage = "rematch",
        namespace = message.namespace,
        image = message.image,
        registry = Empty,
        attempt = delivery.attempt,
        outcome = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    let work = || operator.catch(WORKER, "rematch", findings::rematch(operator, &message));
    let done = PATIENCE.work(work);
    let done = done.instrument(span.clone()).await;
    let done = done.map_err(|trouble| {
        let (namespace, image) = (&message.namespace, &message.image);
        tracing::warn!(namespace, image, %trouble, "a report of older data stays");
        trouble.into_failure()
    });
    tell(&span, done.as_ref().err(), delivery.last);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_get_better_counts_as_failed_on_the_last_try_only() {
        let permanent = Failure::Permanent { reason: "".into() };
        let transient = Failure::Transient {
            reason: "".into(),
            after: None,
        };
        for (failure, last, expected) in [
            (None, true, StageOutcome::Done),
            (Some(&permanent), false, StageOutcome::Failed),
            (Some(&transient), false, StageOutcome::Retried),
            (Some(&transient), true, StageOutcome::Failed),
        ] {
            assert_eq!(outcome(failure, last), expected);
        }
    }
}
