//! The webhooks on the wire. kube-apiserver alone has reason to ask, but anybody may knock: what is
//! asked is bounded in size, time and number, tells nothing that the asker did not bring, and one
//! question that cannot be answered does not touch another.

use super::configuration::{DEFAULTS, VERDICT};
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use muster_apiserver::body::RequestBody;
use muster_apiserver::listen::Handler;
use muster_apiserver::respond::{self, Answer};
use muster_kind::Status;
use muster_kind::kind::SIZE_LIMIT;
use muster_operator::admission::{Admission, Question};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A review may hold an object before and after, and something about both.
const LIMIT: usize = 2 * SIZE_LIMIT + 64 * 1024;
/// The most that is read of a review that is too large, before its connection ends.
const MAX_DISCARDED: usize = 4 * LIMIT;
/// How long an answer may take; kube-apiserver waits no longer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a body may take to come: nobody who trickles keeps the others from their turn.
const TRICKLE: Duration = Duration::from_secs(3);
/// How many are answered at a time; others wait their turn.
const CROWD: usize = 32;
/// How many are read at a time; more are turned away.
const READERS: usize = 512;

/// Answers kube-apiserver.
pub(super) struct Reviewer {
    admission: Arc<Admission>,
    turns: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl Reviewer {
    pub(super) fn new(admission: Admission) -> Self {
        Reviewer {
            admission: Arc::new(admission),
            turns: Arc::new(Semaphore::new(CROWD)),
            readers: Arc::new(Semaphore::new(READERS)),
        }
    }

    async fn review(&self, question: Question, body: RequestBody) -> Result<Answer, Status> {
        // Whoever sends nothing waits among its like: turns are for questions that are here.
        let place = self.readers.clone().try_acquire_owned();
        let place = place.map_err(|_| Status::unavailable("too many reviews are being read"))?;
        let late = |_| Status::bad_request("reading the review: it takes too long");
        let body = tokio::time::timeout(TRICKLE, read(body)).await;
        let body = body.map_err(late)??;
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(Status::internal)?;
        drop(place);
        let admission = self.admission.clone();
        // A task of its own: were it to panic, the connection and all who share it would live on.
        let answered = tokio::spawn(async move {
            let answered = admission.answer(question, &body).await;
            drop(turn);
            answered
        });
        let answered = answered.await.map_err(Status::internal)??;
        Ok(respond::json(StatusCode::OK, &answered))
    }
}

/// Reads on without keeping anything. A client that still sends when its connection ends does not read the answer.
async fn discard(mut body: RequestBody) {
    let mut left = MAX_DISCARDED;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, |data| data.len());
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

async fn read(mut body: RequestBody) -> Result<Vec<u8>, Status> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("reading the review: {error}")))?;
        let data = frame.into_data().unwrap_or_default();
        if read.len() + data.len() > LIMIT {
            drop(read);
            discard(body).await;
            let most = format!("a review is at most {LIMIT} bytes");
            return Err(Status::too_large(most));
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}

impl Reviewer {
    async fn answer(&self, request: Request<RequestBody>) -> Answer {
        let question = match request.uri().path() {
            DEFAULTS => Question::Defaults,
            VERDICT => Question::Verdict,
            _ => return respond::no_page(),
        };
        if request.method() != Method::POST {
            return respond::error(&Status::method_not_allowed());
        }
        let review = self.review(question, request.into_body());
        let answered = match tokio::time::timeout(DEADLINE, review).await {
            Ok(answered) => answered,
            Err(_) => Err(Status::unavailable(format!(
                "the review was not answered within {} s",
                DEADLINE.as_secs()
            ))),
        };
        answered.unwrap_or_else(|wrong| {
            tracing::debug!(%wrong, "a review that cannot be answered");
            respond::error(&wrong)
        })
    }
}

impl Handler for Reviewer {
    fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'_, Answer> {
        Box::pin(self.answer(request))
    }
}
