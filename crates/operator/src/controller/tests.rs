//! A controller whose reconcile panics for one of two objects.

use super::*;
use crate::object::SCAN_JOB;
use crate::testing::{absent, client, json, operator, silence};
use http::Method;
use kube::runtime::watcher;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

const HANG: Duration = Duration::from_secs(60);

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "ScanJob",
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"},
    })
}

/// A server with two ScanJobs, which never change, and what is posted to it.
fn server(posted: Arc<AtomicUsize>) -> kube::Client {
    client(move |request| {
        let query = request.uri().query().unwrap_or_default();
        if request.method() == Method::POST {
            posted.fetch_add(1, Ordering::SeqCst);
            return (201, json(&json!({"metadata": {"name": "event"}})));
        }
        if !request.uri().path().ends_with("/scanjobs") {
            return absent();
        }
        if query.contains("watch=true") {
            return (200, silence());
        }
        let list = json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "ScanJobList",
            "metadata": {"resourceVersion": "1"}, "items": [job("bad"), job("good")],
        });
        (200, json(&list))
    })
}

#[tokio::test]
async fn a_reconcile_that_panics_is_a_failure_of_its_object_and_is_tried_again() {
    let posted = Arc::new(AtomicUsize::new(0));
    let client = server(posted.clone());
    let operator = operator(client.clone());
    let all = SCAN_JOB.all(&client);
    let controller = Controller::new_with(all, watcher::Config::default(), SCAN_JOB.resource());
    let stop = CancellationToken::new();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let enough = stop.clone();
    let reconcile = move |object: Arc<DynamicObject>, seen: Arc<Mutex<Vec<String>>>| {
        let enough = enough.clone();
        async move {
            let name = object.name_any();
            let counts = {
                let mut seen = seen.lock().unwrap();
                seen.push(name.clone());
                ["bad", "good"].map(|name| seen.iter().filter(|one| *one == name).count())
            };
            if counts[0] >= 4 && counts[1] >= 1 {
                enough.cancel();
            }
            assert!(name != "bad" || counts[0] >= 4, "on purpose");
            Ok(Action::await_change())
        }
    };
    let running = run_with(
        Panicked::new(Duration::ZERO),
        SCAN_JOB,
        controller,
        reconcile,
        seen,
        operator.clone(),
        stop,
    );
    tokio::time::timeout(HANG, running).await.expect("an end");
    let panics = operator.metrics().panics();
    assert_eq!(panics.count(OPERATOR, "ScanJob"), 3);
    assert_eq!(posted.load(Ordering::SeqCst), 1, "Events of a panic");
}

#[test]
fn pauses_grow_while_an_object_panics_and_only_then() {
    let object = |name: &str| serde_json::from_value::<DynamicObject>(job(name)).unwrap();
    let (bad, other) = (object("bad"), object("other"));
    let panics = muster_control::Panics::default();
    let panicked = Trouble::Panicked(panics.record(OPERATOR, "ScanJob", &"on purpose"));
    let failed = Trouble::Transient("no".into());
    let known = Panicked::new(SOON);
    let pause = |known: &Panicked, object, trouble| known.retry_after(object, trouble).as_secs();
    let grown: Vec<u64> = (0..8)
        .map(|_| {
            known.add(&bad);
            pause(&known, &bad, &panicked)
        })
        .collect();
    assert_eq!(grown, [5, 10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(pause(&known, &bad, &failed), 5);
    assert_eq!(pause(&known, &other, &panicked), 5);
    known.forget(&bad);
    assert_eq!(pause(&known, &bad, &panicked), 5);
    for number in 0..3 * MAX_REMEMBERED {
        known.add(&object(&number.to_string()));
    }
    assert!(known.counts.lock().unwrap().len() <= MAX_REMEMBERED);
}
