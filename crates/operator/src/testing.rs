//! An operator whose API server says what a test wants, and which has no queue.

use crate::work::{Operator, Settings};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use muster_queue::{Dead, Delivery, Depth, Published, Queue, QueueError};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The body of an answer.
pub(crate) type Answer = BoxBody<Bytes, Infallible>;

/// A client of a server that answers each request with a status code and a body.
pub(crate) fn client(
    answer: impl Fn(&Request<Body>) -> (u16, Answer) + Clone + Send + Sync + 'static,
) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (code, body) = answer(&request);
        async move {
            let mut response = Response::new(body);
            *response.status_mut() = http::StatusCode::from_u16(code).expect("a status");
            Ok::<_, Infallible>(response)
        }
    });
    kube::Client::new(service, "default")
}

/// A body with a value.
pub(crate) fn json(value: &serde_json::Value) -> Answer {
    Full::from(value.to_string()).boxed()
}

/// The body of a watch without events.
pub(crate) fn silence() -> Answer {
    StreamBody::new(futures::stream::pending()).boxed()
}

/// The answer for an object that does not exist.
pub(crate) fn absent() -> (u16, Answer) {
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
    });
    (404, json(&status))
}

/// An operator with this client.
pub(crate) fn operator(client: kube::Client) -> Arc<Operator> {
    let settings = Settings {
        data: PathBuf::new(),
        layers: None,
        update: None,
        hubs: Default::default(),
        mirrors: Default::default(),
        installation: "muster".into(),
        metrics: Arc::default(),
        tracer: Default::default(),
        cluster: None,
        workloads: false,
    };
    Operator::new(client, Arc::new(NoQueue), settings)
}

#[derive(Debug)]
struct NoQueue;

#[async_trait]
impl Queue for NoQueue {
    async fn publish(&self, _: &str, _: &str, _: Bytes) -> Result<Published, QueueError> {
        Err(QueueError::Closed)
    }
    async fn pull(&self, _: &str, _: usize, _: Duration) -> Result<Vec<Delivery>, QueueError> {
        Err(QueueError::Closed)
    }
    async fn ack(&self, _: &Delivery) -> Result<(), QueueError> {
        Err(QueueError::Closed)
    }
    async fn nak(&self, _: &Delivery, _: Duration, _: &str) -> Result<(), QueueError> {
        Err(QueueError::Closed)
    }
    async fn progress(&self, _: &Delivery) -> Result<(), QueueError> {
        Err(QueueError::Closed)
    }
    async fn term(&self, _: &Delivery, _: &str) -> Result<(), QueueError> {
        Err(QueueError::Closed)
    }
    async fn depth(&self, _: &str) -> Result<Depth, QueueError> {
        Err(QueueError::Closed)
    }
    async fn dead(&self, _: &str, _: usize) -> Result<Vec<Dead>, QueueError> {
        Err(QueueError::Closed)
    }
}
