//! Policies that a policy server judges, over TLS with client certificates.

use crate::server::{Answer, Asked, Protection, Server, answer};
use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use muster_audit::lookup;
use muster_audit::modules::{self, Modules};
use muster_audit::prepare::Preparer;
use muster_audit::servers::{self, Objects, Servers};
use muster_policy::remote::RemotePolicy;
use muster_policy::{Evaluator, Outcome, Policy, Request, Verdict};
use muster_testkit::certificates::{Authority, Pair};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// Judges by the policy's name and the object's labels, as a policy server answers.
async fn judge(asked: Asked, hung_up: Arc<AtomicBool>) -> Answer {
    let review: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let request = &review["request"];
    let well_formed = review["kind"] == "AdmissionReview"
        && review["apiVersion"] == "admission.k8s.io/v1"
        && request["operation"] == "CREATE"
        && ["uid", "kind", "resource", "userInfo"]
            .iter()
            .all(|field| !request[field].is_null());
    if !well_formed {
        return answer(422, r#"{"message":"no AdmissionReview","status":422}"#);
    }
    let response = |response: Value| {
        let mut response = response;
        response["uid"] = request["uid"].clone();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": response});
        answer(200, review.to_string())
    };
    let label = |name: &str| !request["object"]["metadata"]["labels"][name].is_null();
    match asked.target.as_str() {
        "/audit/clusterwide-labels" if label("forbidden") => response(json!({
            "allowed": false, "status": {"message": "the label is forbidden", "code": 400},
        })),
        "/audit/clusterwide-labels" if label("old") => {
            response(json!({"allowed": true, "warnings": ["the label is old"]}))
        }
        "/audit/clusterwide-labels" => response(json!({"allowed": true})),
        "/audit/clusterwide-mutates" => response(json!({
            "allowed": true, "patchType": "JSONPatch",
            "patch": BASE64_STANDARD.encode(r#"[{"op":"remove","path":"/spec"}]"#),
        })),
        "/audit/clusterwide-group-several" => response(json!({
            "allowed": false, "status": {"message": "not like this", "details": {"causes": [
                {"field": "spec.policies.first", "message": "too bad"}]}},
        })),
        "/audit/clusterwide-broken" => response(json!({
            "allowed": false, "status": {"message": "the guest trapped", "code": 500},
        })),
        "/audit/clusterwide-slow" => std::future::pending().await,
        "/audit/clusterwide-garbage" => answer(200, "<html>"),
        "/audit/clusterwide-huge" => answer(200, vec![b' '; 5 << 20]),
        "/audit/clusterwide-busy" => answer(500, "oh no"),
        "/audit/clusterwide-moved" => answer(302, ""),
        "/audit/clusterwide-hangs-up" => None,
        "/audit/clusterwide-hangs-up-once" if !hung_up.swap(true, Ordering::SeqCst) => None,
        "/audit/clusterwide-hangs-up-once" => response(json!({"allowed": true})),
        _ => answer(404, ""),
    }
}

async fn start() -> Result<Server> {
    let hung_up = Arc::new(AtomicBool::new(false));
    Server::start(Protection::Mutual, move |asked| {
        judge(asked, hung_up.clone())
    })
    .await
}

/// The server as an object, and the Secret with what to show and whom to trust.
fn objects(address: &str, identity: Option<&Pair>, trusted: &str) -> Objects {
    let mut data = json!({"ca.crt": trusted});
    if let Some(identity) = identity {
        data["tls.crt"] = identity.certificate.as_str().into();
        data["tls.key"] = identity.key.as_str().into();
    }
    Objects::Written(Arc::new(vec![
        json!({"kind": "PolicyServer", "metadata": {"name": "remote"},
            "spec": {"address": address, "clientSecret": "mine"}}),
        json!({"kind": "Secret", "metadata": {"name": "mine", "namespace": "muster"},
            "stringData": data}),
    ]))
}

fn pod(labels: Value) -> Request {
    let metadata = json!({"name": "p", "namespace": "n", "uid": "u", "labels": labels});
    Request::create(
        "pods",
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}),
    )
}

async fn ask(evaluator: Arc<dyn Evaluator>, request: Request) -> Result<Verdict> {
    Ok(tokio::task::spawn_blocking(move || evaluator.judge(&request)).await?)
}

/// The policy of this name, made ready from objects.
async fn ready(objects: Objects, name: &str) -> Result<Arc<dyn Evaluator>> {
    let sandbox = muster_wasm::Sandbox::new(Default::default())?;
    let preparer = Preparer::new(
        Arc::new(Modules::new(modules::Options::default(), sandbox)),
        Servers::new(objects, &["muster"], None),
        Arc::new(lookup::Nowhere),
        Handle::current(),
    );
    let (kind, name) = match name.strip_prefix("group-") {
        Some(name) => ("ClusterAdmissionPolicyGroup", name),
        None => ("ClusterAdmissionPolicy", name),
    };
    let policy = Policy::read(&json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "policyServer": "remote", "module": "registry://nowhere.invalid/a",
            "expression": "first()", "message": "no",
            "policies": {"first": {"module": "registry://nowhere.invalid/a"}},
        },
    }))?;
    Ok(preparer.prepare(&policy).await?.evaluator)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_server_judges_as_it_would_at_admission() -> Result<()> {
    let server = start().await?;
    let identity = server.client()?;
    let authority = &server.authority.certificate;
    let objects = objects(&server.url(), Some(&identity), authority);
    let at = format!("the policy server {}: ", server.url());
    for (policy, labels, outcome, message) in [
        ("labels", json!({}), Outcome::Pass, String::new()),
        ("labels", json!({"old": ""}), Outcome::Pass, String::new()),
        (
            "labels",
            json!({"forbidden": ""}),
            Outcome::Fail,
            "the label is forbidden".into(),
        ),
        ("mutates", json!({}), Outcome::Pass, String::new()),
        (
            "group-several",
            json!({}),
            Outcome::Fail,
            "not like this".into(),
        ),
        (
            "broken",
            json!({}),
            Outcome::Error,
            format!("{at}the guest trapped"),
        ),
        (
            "unknown",
            json!({}),
            Outcome::Error,
            format!("{at}it does not know the policy clusterwide-unknown"),
        ),
        (
            "garbage",
            json!({}),
            Outcome::Error,
            format!("{at}its answer is no AdmissionReview"),
        ),
        (
            "huge",
            json!({}),
            Outcome::Error,
            format!("{at}its answer is larger than 4194304 bytes"),
        ),
        (
            "busy",
            json!({}),
            Outcome::Error,
            format!("{at}it answers 500 Internal Server Error"),
        ),
        (
            "moved",
            json!({}),
            Outcome::Error,
            format!("{at}it answers 302 Found"),
        ),
        ("hangs-up-once", json!({}), Outcome::Pass, String::new()),
        (
            "hangs-up",
            json!({}),
            Outcome::Error,
            format!(
                "{at}it closes the connection without an answer; it may want another client \
                 certificate"
            ),
        ),
    ] {
        let evaluator = ready(objects.clone(), policy).await?;
        let verdict = ask(evaluator, pod(labels.clone())).await?;
        assert_eq!(verdict.outcome, outcome, "{policy}: {}", verdict.message);
        assert_eq!(verdict.message, message, "{policy}");
        assert_eq!(verdict.is_mutation(), policy == "mutates", "{policy}");
        assert_eq!(verdict.causes.len(), usize::from(policy == "group-several"));
        let warned = labels.get("old").is_some();
        assert_eq!(verdict.warnings.len(), usize::from(warned), "{policy}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_one_within_the_time() -> Result<()> {
    let server = start().await?;
    let identity = server.client()?;
    let authority = &server.authority.certificate;
    let servers = Servers::new(
        objects(&server.url(), Some(&identity), authority),
        &["muster"],
        None,
    );
    let servers::Server::Remote { client, address } = servers.find("remote").await? else {
        anyhow::bail!("not remote");
    };
    let time = Duration::from_millis(300);
    let slow = RemotePolicy::new(
        client,
        &address,
        "clusterwide-slow",
        time,
        Handle::current(),
    );
    let verdict = ask(Arc::new(slow), pod(json!({}))).await?;
    assert_eq!(verdict.outcome, Outcome::Error);
    assert_eq!(
        verdict.message,
        format!(
            "the policy server {}: it gives no answer within 300ms",
            server.url()
        )
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_trusted_is_not_asked_and_does_not_answer() -> Result<()> {
    let server = start().await?;
    let stranger = Authority::new("stranger")?;
    let (mine, other) = (server.client()?, stranger.client("muster", &[])?);
    let trusted = &server.authority.certificate;
    let nobody = format!("https://127.0.0.1:{}", muster_testkit::port::free()?);
    let plain = server.url().replace("https:", "http:");
    let closed = "it closes the connection without an answer; it may want another client \
                  certificate";
    for (address, identity, trusted, expected) in [
        (&server.url(), Some(&mine), trusted, None),
        (&server.url(), Some(&other), trusted, Some(closed)),
        (&server.url(), None, trusted, Some(closed)),
        (
            &server.url(),
            Some(&mine),
            &stranger.certificate,
            Some("its certificate is of an authority that is not trusted"),
        ),
        (&nobody, Some(&mine), trusted, Some("nobody listens there")),
        (
            &plain,
            Some(&mine),
            trusted,
            Some("it closes the connection without an answer"),
        ),
    ] {
        // The same each time, however a connection happens to end.
        for _ in 0..3 {
            let evaluator = ready(objects(address, identity, trusted), "labels").await?;
            let verdict = ask(evaluator, pod(json!({}))).await?;
            match expected {
                None => assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.message),
                Some(expected) => {
                    assert_eq!(verdict.outcome, Outcome::Error);
                    let expected = format!("the policy server {address}: {expected}");
                    assert_eq!(verdict.message, expected);
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_evaluations_share_a_few_connections() -> Result<()> {
    let server = start().await?;
    let identity = server.client()?;
    let authority = &server.authority.certificate;
    let objects = objects(&server.url(), Some(&identity), authority);
    let evaluator = ready(objects, "labels").await?;
    let threads = 4;
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..threads {
        let evaluator = evaluator.clone();
        all.spawn_blocking(move || {
            let request = pod(json!({}));
            let verdicts = (0..50).map(|_| evaluator.judge(&request));
            verdicts
                .filter(|verdict| verdict.outcome == Outcome::Pass)
                .count()
        });
    }
    while let Some(passed) = all.join_next().await {
        assert_eq!(passed?, 50);
    }
    // One that comes back a moment late may have been replaced by another.
    assert!(
        server.connections() <= 4 * threads,
        "{}",
        server.connections()
    );
    Ok(())
}
