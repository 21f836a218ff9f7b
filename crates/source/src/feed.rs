//! From asynchronous pieces to a blocking reader: what comes from a socket is read by a thread that
//! decompresses and hashes, a few pieces behind. Whoever gives up waiting for the outcome ends both
//! sides.

use crate::error::Error;
use crate::options::Progress;
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use std::io::{self, Read};
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

/// How many pieces wait to be read.
const PIECES: usize = 16;

/// Pieces as they are read. The end is told apart from a sender that is gone.
pub(crate) struct Fed {
    pieces: mpsc::Receiver<Option<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Read for Fed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.ended = true,
                None => return Err(abandoned()),
            }
        }
        let length = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn abandoned() -> io::Error {
    io::Error::other("nobody waits for it any more")
}

/// Has `work` read the pieces on a thread of its own. An error among the pieces is the outcome,
/// whatever the work made of it.
pub(crate) async fn read<T: Send + 'static>(
    pieces: impl Stream<Item = Result<Bytes, Error>>,
    work: impl FnOnce(Fed) -> T + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = mpsc::channel(PIECES);
    let fed = Fed {
        pieces: receiver,
        piece: Bytes::new(),
        ended: false,
    };
    let working = tokio::task::spawn_blocking(move || work(fed));
    let feeding = async move {
        let sender = sender;
        let mut pieces = std::pin::pin!(pieces);
        while let Some(piece) = pieces.next().await {
            // Work that has ended early says why itself.
            if sender.send(Some(piece?)).await.is_err() {
                return Ok(());
            }
        }
        let _ = sender.send(None).await;
        Ok::<_, Error>(())
    };
    let (fed, worked) = futures::future::join(feeding, working).await;
    fed?;
    Ok(worked?)
}

/// A reader that says how far it is, and stops when nobody waits for it any more.
pub(crate) struct Watched<R> {
    inner: R,
    layer: String,
    progress: Arc<dyn Progress>,
    awaited: Weak<()>,
}

impl<R> Watched<R> {
    /// Reads as long as somebody holds `awaited`.
    pub(crate) fn new(
        inner: R,
        layer: String,
        progress: Arc<dyn Progress>,
        awaited: Weak<()>,
    ) -> Self {
        Watched {
            inner,
            layer,
            progress,
            awaited,
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.awaited.strong_count() == 0 {
            return Err(abandoned());
        }
        let read = self.inner.read(buffer)?;
        self.progress.layer_advanced(&self.layer, read as u64);
        Ok(read)
    }
}
