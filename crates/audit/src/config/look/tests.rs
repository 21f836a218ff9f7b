//! An object is judged while somebody settles that nobody judges its kind.

use super::*;
use crate::config::testing::desks;
use crate::config::{ConfigMetrics, ConfigSettings};
use crate::scope::Scope;
use http::{Request, Response};
use kube::client::Body;
use muster_checks::judge::{OWNER, occupy};
use muster_checks::report::STALE;
use serde_json::json;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};

/// Tests that evaluate checks, one at a time: one takes all places of their owner.
static EVALUATING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

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
    let made = over(kube::Client::new(service, "default"));
    assert!(shared.set(made.clone()).is_ok());
    made
}

fn over(client: kube::Client) -> Arc<ConfigAuditor> {
    ConfigAuditor::new(ConfigSettings {
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
    })
}

#[tokio::test]
async fn a_report_whose_policies_went_while_it_was_written_is_looked_at_again() {
    let _alone = EVALUATING.lock().await;
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

/// An API server with one report, and how often it was written.
#[derive(Clone, Default)]
struct OneReport(Arc<Mutex<(Value, u64)>>);

impl OneReport {
    fn client(&self) -> kube::Client {
        let report = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let report = report.clone();
            async move {
                let method = request.method().clone();
                let body = request.into_body().collect_bytes().await.unwrap();
                let answer = report.answer(&method, &body).to_string();
                Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &http::Method, body: &[u8]) -> Value {
        let mut kept = self.0.lock().unwrap();
        let (report, writes) = &mut *kept;
        match method.as_str() {
            "POST" | "PUT" => *report = serde_json::from_slice(body).unwrap(),
            "PATCH" => {
                let patch: Value = serde_json::from_slice(body).unwrap();
                report["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
            }
            "GET" => {
                return json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [report]});
            }
            other => panic!("{other}"),
        }
        *writes += 1;
        report["metadata"]["resourceVersion"] = (100 + *writes).to_string().into();
        report.clone()
    }

    fn writes(&self) -> u64 {
        self.0.lock().unwrap().1
    }

    /// Its hashes, why it is stale, and what it says.
    fn says(&self) -> (Option<Hashes>, Option<String>, Value) {
        let report = self.0.lock().unwrap().0.clone();
        let labels = serde_json::from_value(report["metadata"]["labels"].clone()).unwrap();
        let why = report["metadata"]["annotations"][STALE].as_str();
        (
            Hashes::read(&labels),
            why.map(str::to_owned),
            report["report"].clone(),
        )
    }
}

fn pod(team: &str) -> Object {
    let pod =
        json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"t": team}}});
    serde_json::from_value(pod).unwrap()
}

#[tokio::test]
async fn a_report_stays_and_is_marked_while_its_successor_cannot_be_made() {
    let _alone = EVALUATING.lock().await;
    let server = OneReport::default();
    let auditor = over(server.client());
    auditor.state().desks = desks(&[["a", "Pod", "1"]], "1", &["v1 Pod"]);
    let at = whereabouts(&Place::new((String::new(), "pods".into())), &pod("x"));
    let is_retried = || auditor.state().failures.contains_key(&at);
    let work = async |team: &str| {
        let job = Job::There(at.place.clone(), Box::new(pod(team)));
        auditor.work(job).await;
    };
    // Without a report before, an incomplete one says so, and is not taken for a result.
    let occupied = occupy(&OWNER);
    work("x").await;
    let (hashes, why, said) = server.says();
    assert_eq!(hashes, None);
    assert!(why.unwrap().contains("not evaluated yet"), "{said}");
    assert_eq!(said["summary"]["errorCount"], 1);
    assert!(is_retried());
    // It is not written again and again.
    work("x").await;
    assert_eq!(server.writes(), 1);
    drop(occupied);
    work("x").await;
    let (first, why, said) = server.says();
    assert!(first.is_some() && why.is_none() && !is_retried());
    assert_eq!(said["summary"]["errorCount"], 0);
    assert_eq!(said["summary"]["criticalCount"], 1);
    // The object changes while nothing is evaluated: the report stays, and is marked once.
    let occupied = occupy(&OWNER);
    for _ in 0..2 {
        work("y").await;
    }
    let (hashes, why, same) = server.says();
    assert_eq!((&hashes, &same), (&first, &said));
    assert!(why.unwrap().contains("not evaluated yet"));
    assert!(is_retried());
    assert_eq!(server.writes(), 3);
    drop(occupied);
    // Even if the object is as it was, the report is made again; as it is after a restart.
    let metadata = serde_json::from_value(server.0.lock().unwrap().0.clone()).unwrap();
    let found = crate::config::follow::kept(&metadata).unwrap();
    assert!(found.is_stale && found.current_hashes().is_none());
    work("x").await;
    let (hashes, why, _) = server.says();
    assert_eq!((hashes, why), (first, None));
    assert!(!is_retried());
    assert_eq!(server.writes(), 4);
}

#[tokio::test]
async fn a_report_with_errors_is_made_again_after_a_start() {
    let _alone = EVALUATING.lock().await;
    for (errors, is_again) in [(1, true), (0, false)] {
        let server = OneReport::default();
        let auditor = over(server.client());
        auditor.state().desks = desks(&[["a", "Pod", "1"]], "1", &["v1 Pod"]);
        let at = whereabouts(&Place::new((String::new(), "pods".into())), &pod("x"));
        auditor
            .work(Job::There(at.place.clone(), Box::new(pod("x"))))
            .await;
        // As an earlier version wrote it: with both hashes, though a policy was not evaluated.
        server.0.lock().unwrap().0["report"]["summary"]["errorCount"] = errors.into();
        auditor.revisit().await;
        let wanted = auditor.errands.due_within(Duration::from_secs(1));
        assert_eq!(wanted == 1, is_again, "{errors}");
        let job = Job::There(at.place.clone(), Box::new(pod("x")));
        auditor.work(job).await;
        assert_eq!(server.writes() == 2, is_again, "{errors}");
        let (hashes, _, said) = server.says();
        assert!(hashes.is_some() && said["summary"]["errorCount"] == 0);
    }
}

#[tokio::test]
async fn a_report_stays_if_its_evaluation_after_a_start_is_refused() {
    let _alone = EVALUATING.lock().await;
    let server = OneReport::default();
    let auditor = over(server.client());
    auditor.state().desks = desks(&[["a", "Pod", "1"]], "1", &["v1 Pod"]);
    let place = Place::new((String::new(), "pods".into()));
    let work = async || {
        let job = Job::There(place.clone(), Box::new(pod("x")));
        auditor.work(job).await;
    };
    work().await;
    server.0.lock().unwrap().0["report"]["summary"]["errorCount"] = 1.into();
    let before = server.says();
    assert_eq!(before.2["summary"]["criticalCount"], 1);
    auditor.revisit().await;
    let occupied = occupy(&OWNER);
    work().await;
    let (hashes, why, said) = server.says();
    assert_eq!((&hashes, &said), (&before.0, &before.2));
    assert!(why.unwrap().contains("not evaluated yet"));
    drop(occupied);
    // It is evaluated once, and not again.
    for _ in 0..2 {
        work().await;
    }
    let (hashes, why, said) = server.says();
    assert_eq!((hashes, why), (before.0, None));
    assert_eq!(said["summary"]["errorCount"], 0);
    assert_eq!(server.writes(), 3);
}
