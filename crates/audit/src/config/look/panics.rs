//! An object whose check panics.

use super::*;
use crate::config::testing::{desks, settings};
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[tokio::test(start_paused = true)]
async fn an_object_whose_check_panics_is_checked_again() {
    const TIMES: u32 = 3;
    let asked: Arc<AtomicU32> = Arc::default();
    let counted = asked.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        let is_broken = counted.fetch_add(1, Ordering::SeqCst) < TIMES;
        async move {
            assert!(!is_broken, "on purpose");
            let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 404,
                "status": "Failure", "reason": "NotFound", "details": {"name": "a"}});
            let mut response = Response::new(Body::from(gone.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(response)
        }
    });
    let auditor = ConfigAuditor::new(settings(kube::Client::new(service, "default")));
    auditor.state().desks = desks(&[["a", "Pod", "1"]], "1", &["v1 Pod"]);
    let at = Whereabouts {
        place: Place::new((String::new(), "pods".into())),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    auditor.want(Task::Look(at.clone()), Duration::ZERO);
    for failures in 0..=TIMES {
        assert_eq!(auditor.errands.next().await, Task::Look(at.clone()));
        auditor.work(Job::Again(at.clone())).await;
        let panics = &auditor.settings.metrics.panics;
        let count = panics.count(COMPONENT, "object");
        assert_eq!(count, u64::from((failures + 1).min(TIMES)));
    }
    // The last look found that the object does not exist, which is no failure.
    assert_eq!(auditor.state().failures.get(&at), None);
    assert_eq!(asked.load(Ordering::SeqCst), TIMES + 1);
}
