//! A layer as a stream: pieces as they come, taken up again where a connection broke, and the
//! digest checked before the end is told. Whoever reads to the end without an error has read the
//! right bytes; what is read before the end is not to be trusted yet.

use crate::answer::Open;
use crate::client::{Call, Client, Target};
use crate::digest::Verifier;
use crate::error::Error;
use crate::manifest::Descriptor;
use crate::reference::Repository;
use crate::retry::Next;
use crate::transport::fault;
use bytes::Bytes;
use futures::Stream;
use http::header::CONTENT_RANGE;
use http::{Method, StatusCode};
use std::io;
use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::io::StreamReader;

/// Progress after which failures are forgiven; one byte per connection is no progress.
const PROGRESS: u64 = 1 << 20;

/// A layer that is being read.
#[derive(Debug)]
pub struct Layer {
    client: Client,
    repository: Repository,
    descriptor: Descriptor,
    attempt: String,
    /// How many bytes were handed out.
    offset: u64,
    verifier: Option<Verifier>,
    transfer: Option<Transfer>,
    failures: u32,
    /// The offset at which the failures are counted from.
    since: u64,
    deadline: Option<Instant>,
}

#[derive(Debug)]
struct Transfer {
    open: Open,
    /// Bytes that come again because the registry began from the start.
    again: u64,
}

impl Layer {
    pub(crate) fn new(
        client: Client,
        repository: &Repository,
        layer: &Descriptor,
    ) -> Result<Layer, Error> {
        let attempt = format!("reading the layer {repository}@{}", layer.digest);
        let limit = client.inner.options.limits.layer;
        if layer.size > limit {
            let reason = format!("{} bytes, at most {limit} are read", layer.size);
            return Err(Error::too_large(&attempt, reason));
        }
        Ok(Layer {
            client,
            repository: repository.clone(),
            verifier: Some(layer.digest.verifier()),
            descriptor: layer.clone(),
            attempt,
            offset: 0,
            transfer: None,
            failures: 0,
            since: 0,
            deadline: None,
        })
    }

    /// How many bytes the layer has.
    pub fn size(&self) -> u64 {
        self.descriptor.size
    }

    /// Takes the next bytes from the caller, who has them from an earlier reading, instead of the
    /// registry. They count for the digest like all others; those beyond the layer's size, and any
    /// after the first piece was asked for, are refused.
    pub fn skip(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let after = self.offset.saturating_add(bytes.len() as u64);
        if self.deadline.is_some() || after > self.descriptor.size {
            let reason = "what was read of it before does not fit";
            return Err(Error::malformed(&self.attempt, reason));
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.update(bytes);
        }
        (self.offset, self.since) = (after, after);
        Ok(())
    }

    /// The next piece; none at the end, after the digest was found right.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let time = self.client.inner.options.timeouts.transfer;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + time);
        match timeout_at(deadline, self.advance()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::unavailable(
                &self.attempt,
                format!("not here within {time:?}"),
            )),
        }
    }

    /// The pieces as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        futures::stream::try_unfold(self, |mut layer| async move {
            let chunk = layer.chunk().await?;
            Ok(chunk.map(|chunk| (chunk, layer)))
        })
    }

    /// The bytes as a reader. The error of a wrong digest comes in place of the end.
    pub fn into_reader(self) -> impl AsyncRead + Send {
        let stream = Box::pin(self.into_stream());
        StreamReader::new(futures::StreamExt::map(stream, |chunk| {
            chunk.map_err(io::Error::other)
        }))
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, Error> {
        while self.offset < self.descriptor.size {
            match self.piece().await {
                Ok(Some(chunk)) => return Ok(Some(chunk)),
                Ok(None) => {}
                Err(error) if error.is_transient() => self.pause(error).await?,
                Err(error) => return Err(error),
            }
        }
        self.end().await
    }

    /// A piece from the open connection, or an open connection.
    async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(transfer) = &mut self.transfer else {
            self.transfer = Some(self.connect().await?);
            return Ok(None);
        };
        let chunk = transfer.open.response.chunk().await;
        let Some(mut chunk) = chunk.map_err(|error| fault(&self.attempt, error))? else {
            let reason = format!(
                "broken off after {} of {} bytes",
                self.offset, self.descriptor.size
            );
            return Err(Error::unavailable(&self.attempt, reason));
        };
        self.client.inner.traffic.tally().read(chunk.len());
        let skipped = transfer.again.min(chunk.len() as u64);
        transfer.again -= skipped;
        let chunk = chunk.split_off(skipped as usize);
        if chunk.is_empty() {
            return Ok(None);
        }
        self.offset += chunk.len() as u64;
        if self.offset > self.descriptor.size {
            let reason = format!(
                "longer than the {} bytes that its manifest says",
                self.descriptor.size
            );
            return Err(Error::malformed(&self.attempt, reason));
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.update(&chunk);
        }
        Ok(Some(chunk))
    }

    async fn connect(&self) -> Result<Transfer, Error> {
        let path = format!("blobs/{}", self.descriptor.digest);
        let target = Target::Repository(&self.repository, path);
        let mut call = Call::new(self.attempt.clone(), Method::GET, target);
        call.from = self.offset;
        let open = self.client.open(&call).await?;
        let again = match open.response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = open.response.headers().get(CONTENT_RANGE);
                let start = range
                    .and_then(|range| range.to_str().ok())
                    .and_then(range_start);
                if start != Some(self.offset) {
                    return Err(Error::malformed(
                        &self.attempt,
                        "another range than the one asked for",
                    ));
                }
                0
            }
            _ => self.offset,
        };
        Ok(Transfer { open, again })
    }

    async fn pause(&mut self, error: Error) -> Result<(), Error> {
        self.transfer = None;
        if self.offset - self.since >= PROGRESS {
            self.failures = 0;
        }
        self.since = self.offset;
        self.failures += 1;
        let retry = &self.client.inner.options.retry;
        match retry.next(self.failures, error.retry_after(), rand::random()) {
            Next::GiveUp => Err(error),
            Next::After(pause) => {
                self.client.inner.traffic.tally().retry();
                tracing::debug!(%error, ?pause, offset = self.offset, "taking a layer up again");
                sleep(pause).await;
                Ok(())
            }
        }
    }

    /// The end: nothing more may come, and the digest must be right.
    async fn end(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(mut transfer) = self.transfer.take() {
            // A connection that breaks after the last byte is no matter.
            if let Ok(Some(more)) = transfer.open.response.chunk().await
                && !more.is_empty()
            {
                let reason = format!(
                    "longer than the {} bytes that its manifest says",
                    self.descriptor.size
                );
                return Err(Error::malformed(&self.attempt, reason));
            }
        }
        let Some(verifier) = self.verifier.take() else {
            return Ok(None);
        };
        match verifier.finish() {
            Ok(()) => Ok(None),
            Err(actual) => Err(Error::DigestMismatch {
                attempt: self.attempt.clone(),
                expected: self.descriptor.digest.clone(),
                actual,
            }),
        }
    }
}

/// Where `bytes 5-9/10` begins.
fn range_start(value: &str) -> Option<u64> {
    let range = value.trim().strip_prefix("bytes")?.trim_start();
    range.split(['-', '/']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_range_is_read() {
        for (value, start) in [
            ("bytes 5-9/10", Some(5)),
            ("bytes 0-0/*", Some(0)),
            ("bytes */10", None),
            ("items 5-9/10", None),
            ("", None),
        ] {
            assert_eq!(range_start(value), start, "{value}");
        }
    }
}
