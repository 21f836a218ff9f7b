//! Tests of panics while a policy is prepared, a decision is made or an object is audited: each is a failure of that
//! policy or object, and is retried.

use crate::agenda::Task;
use crate::auditor::{Auditor, Settings};
use crate::ledger::{Place, Whereabouts};
use crate::look::Job;
use crate::lookup::Nowhere;
use crate::metrics::Metrics;
use crate::modules::{self, Modules};
use crate::note::Key;
use crate::prepare::Preparer;
use crate::scope::Scope;
use crate::servers::{Objects, Servers};
use crate::status::Told;
use crate::testing::policy;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use muster_control::Panics;
use muster_policy::report::Format;
use muster_policy::{LoadError, Sort};
use serde_json::json;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// A client that has nothing; the first requests for each of these paths panic.
fn client(broken: &'static [&'static str], panics: usize) -> Client {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let count = {
            let mut asked = asked.lock().unwrap();
            asked.push(path.clone());
            asked.iter().filter(|one| **one == path).count()
        };
        let is_broken = broken.iter().any(|one| path.ends_with(one)) && count <= panics;
        async move {
            assert!(!is_broken, "on purpose");
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                "status": "Failure", "reason": "NotFound", "code": 404});
            let mut response = Response::new(Body::from(status.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(response)
        }
    });
    Client::new(service, "default")
}

pub(crate) fn auditor(client: Client) -> Arc<Auditor> {
    let sandbox = muster_wasm::Sandbox::new(Default::default()).unwrap();
    let modules = Arc::new(Modules::new(modules::Options::default(), sandbox));
    let servers = Servers::new(Objects::Cluster(client.clone()), &["muster"], None);
    let metrics = Metrics::counting(Panics::default());
    let preparer = Preparer::new(modules, servers, Arc::new(Nowhere), Handle::current());
    let preparer = preparer.counting(metrics.panics.clone());
    Auditor::new(Settings {
        home: client.clone(),
        cluster: client,
        preparer: Arc::new(preparer),
        scope: Scope::default(),
        format: Format::default(),
        controller: None,
        is_alone: true,
        parallel: 1,
        requests_per_second: 0,
        verify: Duration::from_secs(3600),
        metrics,
    })
}

/// The outcome of the last preparation of a policy; none if it was not prepared yet.
fn outcome(auditor: &Auditor, key: Key) -> Option<Result<(), LoadError>> {
    let state = auditor.state();
    let prepared = state.view.policy(key)?.prepared.clone()?;
    Some(prepared.judge.clone().map(drop))
}

#[tokio::test(start_paused = true)]
async fn a_policy_whose_preparation_panics_is_refused_and_prepared_again() {
    // The next one is prepared at once.
    let auditor = auditor(client(&["/policyservers/broken"], 2));
    let cel = json!({"variables": [], "validations": [{"expression": "true"}]});
    let put = |name: &str, server: &str| {
        let spec = json!({"module": "builtin:cel", "settings": cel, "policyServer": server});
        let policy = policy(name, spec);
        let key = Key::of(&policy.uid);
        let mut state = auditor.state();
        state.told.insert(key, Told::new(Sort::Cluster));
        state.view.write_policy(key, Some(policy));
        drop(state);
        auditor.want(Task::Prepare(key), Duration::ZERO);
        key
    };
    let (bad, good) = (put("bad", "broken"), put("good", "default"));
    let stop = CancellationToken::new();
    let panics = &auditor.metrics.panics;
    let until = |condition: Box<dyn Fn() -> bool>| async move {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (one, other) = (auditor.clone(), auditor.clone());
    let checked = async {
        until(Box::new(move || outcome(&one, bad).is_some())).await;
        let why = outcome(&auditor, bad).unwrap().unwrap_err().to_string();
        assert!(why.contains("on purpose"), "{why}");
        assert_eq!(panics.count("audit", "prepare"), 1);
        // After the second panic the server is found not to exist, which is no panic.
        let is_asked = move || {
            let refused = outcome(&other, bad).and_then(Result::err);
            refused.is_some_and(|why| why.to_string().contains("does not exist"))
        };
        until(Box::new(is_asked)).await;
        assert_eq!(panics.count("audit", "prepare"), 2);
        assert_eq!(outcome(&auditor, good), Some(Ok(())));
    };
    tokio::select! {
        () = auditor.keep(&stop) => panic!("it ended"),
        () = checked => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_panics_is_made_again() {
    let auditor = auditor(client(&["/api"], 2));
    let stop = CancellationToken::new();
    auditor.want(Task::Discover, Duration::ZERO);
    let panics = &auditor.metrics.panics;
    let checked = async {
        while panics.count("audit", "policies") < 2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = auditor.keep(&stop) => panic!("it ended"),
        () = checked => {}
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_audit_panics_is_audited_again() {
    let auditor = auditor(client(&["/u"], usize::MAX));
    let at = Whereabouts {
        place: Place::new((String::new(), "pods".into())),
        namespace: Some("n".into()),
        name: "p".into(),
    };
    auditor.state().ledger.see("u", &at, 1);
    for tries in 1..=3 {
        auditor.work(Job::Unseen("u".into(), "why".into())).await;
        assert_eq!(auditor.state().failures["u"], tries);
        let panics = auditor.metrics.panics.count("audit", "object");
        assert_eq!(panics, u64::from(tries));
        assert_eq!(auditor.chore().await, Task::Retry("u".into()));
    }
}
