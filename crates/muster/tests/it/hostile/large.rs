//! Bodies that are too large: refused, and never held in memory.

use super::memory::Watermark;
use super::{CONFIG_MAPS, JSON, Victim, assert_refused};
use anyhow::{Context, Result};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use muster_testkit::http::Request;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HUNDRED_MEGABYTES: usize = 100_000_000;
/// One body up to the limit of 3 MiB, decoded, with the allocator's slack.
const FEW_MEBIBYTES: u64 = 24;

/// Sends a head and then up to 100 MB in pieces as `frame` wraps them; gives the answer's text.
async fn pour(victim: &Victim, head: &str, frame: impl Fn(&[u8]) -> Vec<u8>) -> Result<String> {
    let stream = victim.client.connect().await?;
    let (mut read, mut write) = tokio::io::split(stream);
    let piece = frame(&[b'x'; 16 * 1024]);
    let head = head.to_owned();
    let pouring = tokio::spawn(async move {
        // The server answers and hangs up long before the end.
        if write.write_all(head.as_bytes()).await.is_ok() {
            for _ in 0..HUNDRED_MEGABYTES / (16 * 1024) {
                if write.write_all(&piece).await.is_err() {
                    break;
                }
            }
        }
        write
    });
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = read.read(&mut buffer).await {
        answer.extend_from_slice(&buffer[..count]);
        if answer.ends_with(b"}") {
            break;
        }
    }
    pouring.abort();
    Ok(String::from_utf8(answer)?)
}

fn head(length: &str) -> String {
    format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {JSON}\r\n{length}\r\n\r\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_are_refused_and_not_kept() -> Result<()> {
    let mut victim = Victim::start()?;
    victim.still_answers().await?;
    let mark = Watermark::begin(victim.muster.process())?;
    for attempt in 0..3 {
        let declared = head(&format!("content-length: {HUNDRED_MEGABYTES}"));
        let answer = pour(&victim, &declared, <[u8]>::to_vec).await?;
        assert!(
            answer.starts_with("HTTP/1.1 413"),
            "attempt {attempt}: {answer}"
        );
        let chunked = head("transfer-encoding: chunked");
        let chunk =
            |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let answer = pour(&victim, &chunked, chunk).await?;
        assert!(
            answer.starts_with("HTTP/1.1 413"),
            "attempt {attempt}: {answer}"
        );
        let (_, body) = answer.split_once("\r\n\r\n").context("a body")?;
        assert!(body.contains("RequestEntityTooLarge"), "{body}");
    }
    let growth = mark.growth()?;
    assert!(growth <= FEW_MEBIBYTES, "memory grew by {growth} MiB");
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_bodies_at_once_are_told_to_come_again() -> Result<()> {
    let mut victim = Victim::start()?;
    let head = format!(
        "POST /apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/default/sboms HTTP/1.1\r\n\
         host: localhost\r\ncontent-type: {JSON}\r\ncontent-length: {HUNDRED_MEGABYTES}\r\n\r\n{{"
    );
    let mut uploads = Vec::new();
    for _ in 0..3 {
        let mut upload = victim.client.connect().await?;
        upload.write_all(head.as_bytes()).await?;
        uploads.push(upload);
    }
    // There is room for two. Which of the three comes last is the network's business.
    let mut answers = futures::stream::FuturesUnordered::new();
    for mut upload in uploads {
        answers.push(async move {
            let mut start = [0; 12];
            upload.read_exact(&mut start).await?;
            anyhow::Ok(String::from_utf8_lossy(&start).into_owned())
        });
    }
    let first = futures::StreamExt::next(&mut answers).await;
    assert_eq!(first.context("an answer")??, "HTTP/1.1 429");
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gzip_bomb_does_not_go_off() -> Result<()> {
    let mut victim = Victim::start()?;
    victim.still_answers().await?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let piece = [b' '; 1 << 16];
    for _ in 0..HUNDRED_MEGABYTES / piece.len() {
        encoder.write_all(&piece)?;
    }
    let bomb = Bytes::from(encoder.finish()?);
    assert!(bomb.len() < 1 << 20);
    let mark = Watermark::begin(victim.muster.process())?;
    for _ in 0..5 {
        let request = Request::new(Method::POST, CONFIG_MAPS)
            .body(JSON, bomb.clone())?
            .header("content-encoding", "gzip")?;
        let answer = victim.client.send(request).await?;
        assert_refused("a bomb", &answer, 413, "RequestEntityTooLarge")?;
    }
    let growth = mark.growth()?;
    assert!(growth <= FEW_MEBIBYTES, "memory grew by {growth} MiB");
    let broken = Request::new(Method::POST, CONFIG_MAPS)
        .body(JSON, bomb.slice(..bomb.len() / 2))?
        .header("content-encoding", "gzip")?;
    let answer = victim.client.send(broken).await?;
    assert!(
        matches!(answer.status.as_u16(), 400 | 413),
        "{:?}",
        answer.body
    );
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_as_large_as_allowed_is_kept() -> Result<()> {
    let mut victim = Victim::start()?;
    // Kubernetes' own limit for the data of a ConfigMap is 1 MiB.
    for (length, code, reason) in [(1 << 20, 201, ""), ((1 << 20) + 1, 422, "Invalid")] {
        let text = "x".repeat(length);
        let body =
            serde_json::json!({"metadata": {"name": format!("o-{length}")}, "data": {"a": text}});
        let answer = victim
            .send(Method::POST, CONFIG_MAPS, JSON, body.to_string())
            .await?;
        match code {
            201 => assert_eq!(answer.status, 201, "{:?}", answer.body.slice(..200)),
            _ => assert_refused("too much data", &answer, code, reason)?,
        }
    }
    victim.still_answers().await
}
