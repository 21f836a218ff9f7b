//! An object is judged while somebody settles that nobody judges its kind.

use super::*;
use crate::config::testing::desks;
use crate::config::{ConfigMetrics, ConfigSettings};
use crate::scope::Scope;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

/// What happens while a report is being written.
type Meanwhile = fn(&ConfigAuditor);

/// An audit whose server takes every report, and has something happen before it answers.
fn auditor(meanwhile: Meanwhile) -> Arc<ConfigAuditor> {
    let shared: Arc<OnceLock<Arc<ConfigAuditor>>> = Arc::default();
    let auditor = shared.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        assert_eq!(request.method(), http::Method::POST);
        meanwhile(auditor.get().unwrap());
        let written = json!({"apiVersion": "aquasecurity.github.io/v1alpha1", "kind": "ConfigAuditReport",
            "metadata": {"name": "pod-a", "namespace": "n", "resourceVersion": "7"}});
        async move {
            let body = Body::from(written.to_string().into_bytes());
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    let client = kube::Client::new(service, "default");
    let made = ConfigAuditor::new(ConfigSettings {
        home: client.clone(),
        cluster: client,
        installation: "muster".into(),
        namespaces: Vec::new(),
        scope: Scope::default(),
        choice: Default::default(),
        skip_labels: Default::default(),
        exceptions: true,
        all: false,
        parallel: 1,
        requests_per_second: 0,
        verify: Duration::from_secs(3600),
        metrics: ConfigMetrics::default(),
    });
    assert!(shared.set(made.clone()).is_ok());
    made
}

#[tokio::test]
async fn a_report_whose_policies_went_while_it_was_written_is_looked_at_again() {
    let serve = |policies: &[[&str; 3]]| desks(policies, "1", &["v1 Pod"]);
    let rows: [(&str, Meanwhile, bool); 4] = [
        ("nothing happens", |_| {}, false),
        (
            "the same is settled again",
            |auditor| {
                auditor.state().desks = desks(&[["a", "Pod", "1"]], "1", &["v1 Pod"]);
            },
            false,
        ),
        (
            "the last policy goes",
            |auditor| {
                auditor.state().desks = desks(&[], "1", &["v1 Pod"]);
            },
            true,
        ),
        (
            "the policy changes",
            |auditor| {
                auditor.state().desks = desks(&[["a", "Pod", "2"]], "1", &["v1 Pod"]);
            },
            true,
        ),
    ];
    for (what, meanwhile, is_wanted) in rows {
        let auditor = auditor(meanwhile);
        auditor.state().desks = serve(&[["a", "Pod", "1"]]);
        let object: Object = serde_json::from_value(
            json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}}),
        )
        .unwrap();
        let at = whereabouts(&Place::new((String::new(), "pods".into())), &object);
        auditor.look(&at, object).await.unwrap();
        assert_eq!(auditor.state().reports.len(), 1, "{what}");
        let wanted = auditor.errands.due_within(Duration::from_secs(1));
        assert_eq!(wanted == 1, is_wanted, "{what}");
        if is_wanted {
            assert_eq!(auditor.errands.next().await, Task::Look(at), "{what}");
        }
    }
}
