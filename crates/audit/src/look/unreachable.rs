//! Tests of a report with a line of a policy that cannot be reached.

use super::*;
use crate::note::STALE;
use crate::panics::auditor;
use crate::scope::Scope;
use crate::testing::{UNREACHABLE, policy, put, served};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Mutex;

/// The one report of an API server, and how often it was written.
type OneReport = Arc<Mutex<(Value, u64)>>;

fn client(report: &OneReport) -> Client {
    let report = report.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let report = report.clone();
        async move {
            let method = request.method().clone();
            let body = request.into_body().collect_bytes().await.unwrap();
            let mut report = report.lock().unwrap();
            if method != Method::GET {
                report.1 += 1;
                report.0 = serde_json::from_slice(&body).unwrap();
                report.0["metadata"]["resourceVersion"] = (100 + report.1).to_string().into();
            }
            let answer = report.0.to_string();
            Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_report_is_stale_while_it_keeps_the_line_of_a_policy_that_cannot_be_reached() {
    let report = OneReport::default();
    let auditor = auditor(client(&report));
    let place = Place::new((String::new(), "pods".into()));
    let look = async |code: u64| {
        {
            let mut state = auditor.state();
            state.view.serve(vec![served("pods", "Pod")]);
            put(&mut state.view, policy("p", json!({})), code);
            state.view.settle(&Scope::default());
        }
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u",
            "resourceVersion": "7"}});
        let pod = Box::new(serde_json::from_value(pod).unwrap());
        auditor.work(Job::There(place.clone(), pod)).await;
        let (report, writes) = report.lock().unwrap().clone();
        let why = report["metadata"]["annotations"][STALE].as_str();
        (why.map(str::to_owned), report["results"].clone(), writes)
    };
    let (why, results, writes) = look(1).await;
    assert_eq!((why, writes), (None, 1));
    assert_eq!(results[0]["result"], "fail");
    let unreachable = "not evaluated: clusterwide-p: the policy cannot be reached";
    for (code, stale, writes, what) in [
        (UNREACHABLE, Some(unreachable), 2, "the line stays"),
        (UNREACHABLE, Some(unreachable), 2, "it is marked once"),
        (1, None, 3, "the same code can be reached"),
        (UNREACHABLE, Some(unreachable), 4, "the line stays again"),
        (2, None, 5, "other code can be reached"),
    ] {
        let found = look(code).await;
        assert_eq!(
            found,
            (stale.map(str::to_owned), results.clone(), writes),
            "{what}"
        );
    }
}
