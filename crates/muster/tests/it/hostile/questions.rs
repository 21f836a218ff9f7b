//! Questions that make no sense: selectors, tokens, revisions, paths.

use super::{CONFIG_MAPS, JSON, REGISTRIES, Victim, assert_refused};
use anyhow::Result;
use http::Method;
use muster_testkit::http::Request;
use muster_testkit::wait::until_async;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long an answer may take before the test is given up.
const HANG: Duration = Duration::from_secs(60);

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_in_selectors_is_a_bad_request() -> Result<()> {
    let mut victim = Victim::start()?;
    for (parameter, text) in [
        ("labelSelector", "a=b=c"),
        ("labelSelector", "a in"),
        ("labelSelector", "a in (b"),
        ("labelSelector", "(((("),
        ("labelSelector", "=,=,="),
        ("labelSelector", "a b c"),
        ("labelSelector", "!"),
        ("labelSelector", "a>b"),
        ("labelSelector", "\u{1f4a3}"),
        ("labelSelector", "a=\0"),
        ("fieldSelector", "metadata.name"),
        ("fieldSelector", "no.such.field=1"),
        ("fieldSelector", "metadata.name=a\\"),
        ("fieldSelector", "=====,"),
    ] {
        for watch in ["", "&watch=true"] {
            let target = format!("{CONFIG_MAPS}?{parameter}={}{watch}", encoded(text));
            let answer = victim.client.get(&target).await?;
            assert_refused(text, &answer, 400, "BadRequest")?;
        }
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_selectors_are_answered() -> Result<()> {
    let mut victim = Victim::start()?;
    let values: Vec<String> = (0..5000).map(|n| format!("v{n}")).collect();
    let many = format!("a in ({})", values.join(","));
    let terms: Vec<String> = (0..3000).map(|n| format!("k{n}!=v")).collect();
    for selector in [many, terms.join(",")] {
        let target = format!("{CONFIG_MAPS}?labelSelector={}", encoded(&selector));
        assert!(target.len() < 65_000);
        let answer = victim.client.get(&target).await?;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_may_ask_for_any_time() -> Result<()> {
    let mut victim = Victim::start()?;
    for seconds in ["0", "-1", "86401", "9223372036854775807"] {
        let target = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={seconds}");
        let request = Request::new(Method::GET, target);
        let watch = victim.client.watch(request, HANG).await?;
        assert_eq!(watch.status, 200, "{seconds}");
    }
    // One request is in flight: that for the metrics.
    until_async("no other request in flight", HANG, || async {
        let metrics = victim.client.get("/metrics").await?;
        let metrics = String::from_utf8(metrics.body.to_vec())?;
        let is_one = metrics.contains("\napiserver_requests_in_flight 1\n");
        Ok(is_one.then_some(()))
    })
    .await?;
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_tokens_and_revisions_are_refused() -> Result<()> {
    let mut victim = Victim::start()?;
    for name in ["a", "b", "c"] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        victim.send(Method::POST, CONFIG_MAPS, JSON, body).await?;
    }
    let page = victim
        .client
        .get(&format!("{CONFIG_MAPS}?limit=1"))
        .await?
        .json()?;
    let token = page["metadata"]["continue"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(!token.is_empty());
    let mut bent = token.clone().into_bytes();
    bent[4] = if bent[4] == b'A' { b'B' } else { b'A' };
    let bent = String::from_utf8(bent)?;
    for forged in [
        &bent,
        "x",
        "%00",
        "e30",
        "bnVsbA",
        &"A".repeat(5000),
        &token[..token.len() / 2],
    ] {
        let answer = victim
            .client
            .get(&format!("{CONFIG_MAPS}?limit=1&continue={forged}"))
            .await?;
        assert_refused(forged, &answer, 400, "BadRequest")?;
    }
    for (query, code, reason) in [
        ("resourceVersion=999999999", 504, "Timeout"),
        (
            "watch=true&resourceVersion=999999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            504,
            "Timeout",
        ),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        (
            "resourceVersion=2&resourceVersionMatch=Perhaps",
            422,
            "Invalid",
        ),
        ("limit=x", 400, "BadRequest"),
        ("timeoutSeconds=x", 400, "BadRequest"),
        ("sendInitialEvents=true", 422, "Invalid"),
    ] {
        let answer = victim.client.get(&format!("{CONFIG_MAPS}?{query}")).await?;
        assert_refused(query, &answer, code, reason)?;
    }
    // Which error a list or a watch gives for such a revision is for the differential test to say.
    for revision in ["x", "-1", "99999999999999999999999"] {
        for watch in ["", "&watch=true"] {
            let target = format!("{CONFIG_MAPS}?resourceVersion={revision}{watch}");
            let answer = victim.client.get(&target).await?;
            assert!(
                matches!(answer.status.as_u16(), 400 | 422 | 500),
                "{target}"
            );
            assert_eq!(answer.json()?["kind"], "Status");
        }
    }
    let mut found = Vec::new();
    let mut next = format!("{CONFIG_MAPS}?limit=1");
    loop {
        let page = victim.client.get(&next).await?.json()?;
        found.extend(page["items"].as_array().into_iter().flatten().cloned());
        match page["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => {
                next = format!("{CONFIG_MAPS}?limit=1&continue={token}")
            }
            _ => break,
        }
    }
    let names: Vec<&Value> = found.iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b", "c"]);
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_paths_and_methods_have_kubernetes_answers() -> Result<()> {
    let mut victim = Victim::start()?;
    // None of these may be taken for the whole collection.
    let kept = r#"{"metadata":{"name":"kept"}}"#;
    victim.send(Method::POST, CONFIG_MAPS, JSON, kept).await?;
    let registry = r#"{"apiVersion":"sbomscanner.kubewarden.io/v1alpha1","kind":"Registry","metadata":{"name":"kept"},"spec":{"uri":"a.b"}}"#;
    victim
        .send(Method::POST, REGISTRIES, JSON, registry)
        .await?;
    let nameless = format!("{REGISTRIES}//status");
    let long = format!("{CONFIG_MAPS}/{}", "a".repeat(60_000));
    for (method, target, code, reason) in [
        (Method::GET, long.as_str(), 404, "NotFound"),
        (
            Method::GET,
            "/api/v1/namespaces/default/unheard",
            404,
            "NotFound",
        ),
        (
            Method::GET,
            "/apis/no.such.group/v1/things",
            404,
            "NotFound",
        ),
        (
            Method::GET,
            "/api/v1/namespaces/default/configmaps/%ff%fe",
            404,
            "NotFound",
        ),
        (
            Method::GET,
            "/api/v1/namespaces/default/configmaps/a%2fb",
            404,
            "NotFound",
        ),
        (Method::GET, "/../../etc/passwd", 404, "NotFound"),
        (
            Method::DELETE,
            "/api/v1/namespaces/default/configmaps/%ff",
            404,
            "NotFound",
        ),
        (Method::DELETE, nameless.as_str(), 405, "MethodNotAllowed"),
        (Method::PUT, CONFIG_MAPS, 405, "MethodNotAllowed"),
        (Method::PATCH, CONFIG_MAPS, 405, "MethodNotAllowed"),
    ] {
        let answer = victim.client.send(Request::new(method, target)).await?;
        if answer.body.first() == Some(&b'{') {
            assert_refused(&target[..target.len().min(80)], &answer, code, reason)?;
        } else {
            assert_eq!(answer.status, code, "{target}");
        }
    }
    for collection in [CONFIG_MAPS, REGISTRIES] {
        let kept = victim.client.get(&format!("{collection}/kept")).await?;
        assert_eq!(kept.status, 200, "{collection}");
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_no_http_ends_the_connection_only() -> Result<()> {
    let mut victim = Victim::start()?;
    let endless = format!("GET /{} HTTP/1.1\r\n", "a".repeat(1 << 20));
    let headers = format!(
        "GET / HTTP/1.1\r\nhost: a\r\n{}\r\n",
        "x: y\r\n".repeat(20_000)
    );
    for head in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", &endless, &headers] {
        let mut stream = victim.client.connect().await?;
        // The server may hang up before it has heard everything.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
    }
    victim.still_answers().await
}
