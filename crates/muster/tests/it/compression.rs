//! Large answers, compressed and not: the same text either way.

use anyhow::{Result, ensure};
use flate2::read::GzDecoder;
use http::Method;
use muster_testkit::http::{Client, Request, Response};
use muster_testkit::muster::Muster;
use serde_json::{Value, json};
use std::io::Read;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OBJECTS: usize = 1200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_lists_are_compressed_for_those_who_take_it() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let client = Client::new(muster.kubeconfig())?;
    for index in 0..OBJECTS {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("object-{index}")}, "data": {"text": "x".repeat(600)},
        });
        let request = Request::new(Method::POST, CONFIG_MAPS);
        let made = client
            .send(request.body("application/json", object.to_string())?)
            .await?;
        ensure!(made.status == 201, "{made:?}");
    }
    // A streamed list, a list in one piece, and one that is too small to be worth it.
    for (query, shown, packed) in [
        ("", OBJECTS, true),
        ("?limit=400", 400, true),
        ("?limit=9", 9, false),
    ] {
        let target = format!("{CONFIG_MAPS}{query}");
        let plain = client.get(&target).await?;
        ensure!(!plain.headers.contains_key("content-encoding"));
        let request = Request::new(Method::GET, &target).header("accept-encoding", "gzip")?;
        let answer = client.send(request).await?;
        assert_eq!(
            answer.headers.contains_key("content-encoding"),
            packed,
            "{target}"
        );
        let list = decoded(&answer, packed)?;
        assert_eq!(list, plain.json()?);
        assert_eq!(list["items"].as_array().map(Vec::len), Some(shown));
    }
    Ok(())
}

fn decoded(answer: &Response, packed: bool) -> Result<Value> {
    if !packed {
        return answer.json();
    }
    let mut text = Vec::new();
    GzDecoder::new(&answer.body[..]).read_to_end(&mut text)?;
    ensure!(
        answer.body.len() < text.len() / 2,
        "{} bytes",
        answer.body.len()
    );
    Ok(serde_json::from_slice(&text)?)
}
