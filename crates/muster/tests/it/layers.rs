//! `/layers`: what one worker has found in a layer, for all others.

use anyhow::{Context, Result};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use muster_testkit::http::{Client, Request, Response};
use muster_testkit::muster::Muster;
use muster_testkit::push::digest;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const INVENTORY: &str = "application/vnd.muster.layer-inventory+json";
const MEBIBYTE: usize = 1024 * 1024;

struct Owner {
    muster: Muster,
    client: Client,
}

impl Owner {
    fn start() -> Result<Owner> {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let client = Client::new(muster.kubeconfig())?;
        Ok(Owner { muster, client })
    }
}

fn path(layer: &str) -> String {
    format!("/layers/{}?analyzers=1", digest(layer.as_bytes()))
}

async fn put(client: &Client, target: &str, body: impl Into<Bytes>) -> Result<Response> {
    let request = Request::new(Method::PUT, target).body(INVENTORY, body)?;
    client.send(request).await
}

/// Asserts that an answer is a Status of this code; gives its message.
fn refused(what: &str, answer: &Response, code: u16) -> Result<String> {
    assert_eq!(answer.status, code, "{what}: {:?}", answer.body);
    let status = answer.json().with_context(|| what.to_owned())?;
    assert_eq!(status["kind"], "Status", "{what}");
    assert_eq!(status["code"], code, "{what}");
    let message = status["message"].as_str().context("a message")?;
    assert!(!message.is_empty() && message.len() < 1000, "{what}");
    Ok(message.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_is_shared_and_its_first_content_stays() -> Result<()> {
    let mut owner = Owner::start()?;
    let client = owner.client.clone();
    let one = path("one");
    let missing = client.get(&one).await?;
    assert!(refused("nothing yet", &missing, 404)?.contains(&digest(b"one")));
    let inventory = Bytes::from(r#"{"version":1}"#.repeat(20_000));
    assert_eq!(put(&client, &one, inventory.clone()).await?.status, 201);
    assert_eq!(put(&client, &one, inventory.clone()).await?.status, 200);
    let other = put(&client, &one, "{}").await?;
    refused("another content", &other, 409)?;

    let answer = client.get(&one).await?;
    assert_eq!((answer.status.as_u16(), &answer.body), (200, &inventory));
    assert_eq!(answer.headers["content-type"], INVENTORY);
    let tag = answer.headers["etag"].to_str()?.to_owned();
    assert_eq!(tag, format!("\"{}\"", digest(&inventory)));
    let again = Request::new(Method::GET, &one).header("if-none-match", &tag)?;
    let again = client.send(again).await?;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    let head = client.send(Request::new(Method::HEAD, &one)).await?;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.headers["etag"], tag.as_str());
    assert_eq!(
        head.headers["content-length"],
        inventory.len().to_string().as_str()
    );

    // Another version, and the same layer spelled with an escape.
    let next = one.replace("analyzers=1", "analyzers=2");
    refused("another version", &client.get(&next).await?, 404)?;
    let escaped = one.replace("sha256:", "sha256%3A");
    assert_eq!(client.get(&escaped).await?.status, 200);

    for end in [Muster::terminate, Muster::kill9] {
        end(&mut owner.muster)?;
        owner.muster.restart()?;
        let client = Client::new(owner.muster.kubeconfig())?;
        assert_eq!(client.get(&one).await?.body, inventory, "after a restart");
    }

    let client = Client::new(owner.muster.kubeconfig())?;
    let delete = || client.send(Request::new(Method::DELETE, &one));
    assert_eq!(delete().await?.status, 200);
    refused("deleted", &delete().await?, 404)?;
    assert_eq!(put(&client, &one, "{}").await?.status, 201);

    let metrics = client.get("/metrics").await?;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let counted = metrics
        .lines()
        .any(|line| line.contains(r#"verb="put""#) && line.contains(r#"resource="layers""#));
    assert!(counted, "{metrics}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_neither_read_nor_write() -> Result<()> {
    let owner = Owner::start()?;
    let one = path("one");
    assert_eq!(put(&owner.client, &one, "{}").await?.status, 201);
    let stranger = owner.client.stranger()?;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let request = Request::new(method.clone(), &one).body(INVENTORY, "{}")?;
        let answer = stranger.send(request.clone()).await?;
        refused(method.as_str(), &answer, 403)?;
        let request = request.header("authorization", "Bearer forged")?;
        refused(method.as_str(), &stranger.send(request).await?, 401)?;
    }
    let head = stranger.send(Request::new(Method::HEAD, &one)).await?;
    assert_eq!(head.status, 403);
    // Nor do they learn whether there is one.
    refused("no such", &stranger.get(&path("two")).await?, 403)?;
    assert_eq!(owner.client.get(&one).await?.body, "{}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_layer_is_refused_by_name() -> Result<()> {
    let owner = Owner::start()?;
    let client = &owner.client;
    let good = digest(b"x");
    let hex = &good["sha256:".len()..];
    for target in [
        format!("/layers/{hex}?analyzers=1"),
        format!("/layers/sha256:{}?analyzers=1", hex.to_uppercase()),
        format!("/layers/sha512:{hex}?analyzers=1"),
        format!("/layers/{good}0?analyzers=1"),
        format!("/layers/sha256:+{}?analyzers=1", &hex[1..]),
        format!("/layers/{good}"),
        format!("/layers/{good}?analyzers="),
        format!("/layers/{good}?analyzers=1&analyzers=2"),
        format!("/layers/{good}?analyzers=a%2Fb"),
        format!("/layers/{good}?analyzers={}", "x".repeat(65)),
        "/layers/..%2Fapi?analyzers=1".to_owned(),
    ] {
        refused(&target, &client.get(&target).await?, 400)?;
        refused(&target, &put(client, &target, "{}").await?, 400)?;
    }
    for target in [
        "/layers".to_owned(),
        "/layers/".to_owned(),
        format!("/layers/{good}/?analyzers=1"),
        format!("/layers/{good}/x?analyzers=1"),
        format!("/layers//{good}?analyzers=1"),
    ] {
        refused(&target, &client.get(&target).await?, 404)?;
        refused(&target, &put(client, &target, "{}").await?, 404)?;
    }
    let one = path("one");
    for method in [Method::POST, Method::PATCH, Method::OPTIONS] {
        let request = Request::new(method.clone(), &one).body(INVENTORY, "{}")?;
        refused(method.as_str(), &client.send(request).await?, 405)?;
    }
    for kind in ["application/json", "text/plain", ""] {
        let request = Request::new(Method::PUT, &one).body(kind, "{}")?;
        refused(kind, &client.send(request).await?, 415)?;
    }
    let request = Request::new(Method::PUT, &one)
        .body(INVENTORY, "{}")?
        .header("content-encoding", "zstd")?;
    refused("zstd", &client.send(request).await?, 415)?;
    refused("nothing", &put(client, &one, "").await?, 400)?;
    refused("none of it is kept", &client.get(&one).await?, 404)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_as_large_as_allowed_is_kept_and_a_larger_one_is_not() -> Result<()> {
    let owner = Owner::start()?;
    let client = &owner.client;
    let largest = Bytes::from(vec![b' '; 16 * MEBIBYTE]);
    assert_eq!(put(client, &path("x"), largest.clone()).await?.status, 201);
    assert_eq!(client.get(&path("x")).await?.body, largest);
    let larger = vec![b' '; 16 * MEBIBYTE + 1];
    // It is refused by what its head declares: the server may hang up on whoever goes on.
    let mut stream = client.connect().await?;
    let (target, length) = (path("y"), larger.len());
    let head = format!(
        "PUT {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {INVENTORY}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = vec![0; b"HTTP/1.1 413".len()];
    stream.read_exact(&mut answer).await?;
    assert_eq!(answer, b"HTTP/1.1 413");
    let gzip = |bytes: &[u8]| -> Result<Request> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes)?;
        let request = Request::new(Method::PUT, path("y")).body(INVENTORY, encoder.finish()?)?;
        request.header("content-encoding", "gzip")
    };
    refused("a bomb", &client.send(gzip(&larger)?).await?, 413)?;
    refused("nothing of it", &client.get(&path("y")).await?, 404)?;
    assert_eq!(client.send(gzip(b"{}")?).await?.status, 201);
    assert_eq!(client.get(&path("y")).await?.body, "{}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_at_once_agree() -> Result<()> {
    let owner = Owner::start()?;
    let workers = (0..12).map(|worker| {
        let client = owner.client.clone();
        tokio::spawn(async move {
            let mut kept = 0;
            for layer in 0..10 {
                let target = path(&format!("layer {layer}"));
                // Half of the workers are wrong, and all wrong in the same way.
                let honest = format!("{{\"layer\":{layer},\"by\":{}}}", worker % 2);
                let put = put(&client, &target, honest.clone()).await?;
                let found = client.get(&target).await?;
                assert_eq!(found.status, 200);
                match put.status.as_u16() {
                    201 => kept += 1,
                    200 => assert_eq!(found.body, honest),
                    409 => assert_ne!(found.body, honest),
                    code => anyhow::bail!("{code}"),
                }
            }
            anyhow::Ok(kept)
        })
    });
    let mut kept = 0;
    for worker in workers.collect::<Vec<_>>() {
        kept += worker.await??;
    }
    assert_eq!(kept, 10, "each layer was kept once");
    Ok(())
}
