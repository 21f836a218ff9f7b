//! Answers that are sent while they are made. Small pieces are gathered into one, large ones leave as slices
//! of the memory they are in. At most a few pieces wait for a slow client.

use crate::compress::Packer;
use crate::opaque::Lost;
use crate::respond::BodyError;
use bytes::{Bytes, BytesMut};
use muster_kind::Status;
use tokio::sync::mpsc;

/// Smaller pieces are gathered, and go out when they have grown to this; larger ones are cut into slices of this size.
/// So no piece that is sent is twice as large.
const PIECE: usize = 64 * 1024;
/// An object of at most this size is sent in one piece, with its length.
pub(crate) const WHOLE: usize = 1024 * 1024;

/// Why an answer ended early.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The client has left.
    Gone,
    /// The rest cannot be made.
    Failed(Status),
}

impl From<Status> for Halt {
    fn from(status: Status) -> Self {
        Halt::Failed(status)
    }
}

impl From<Lost> for Halt {
    fn from(lost: Lost) -> Self {
        Halt::Failed(lost.into())
    }
}

/// An answer on its way.
pub(crate) struct Outgoing {
    gathered: BytesMut,
    packer: Option<Packer>,
    sender: mpsc::Sender<Result<Bytes, BodyError>>,
}

impl Outgoing {
    /// An answer that begins with `gathered`.
    pub(crate) fn new(
        sender: mpsc::Sender<Result<Bytes, BodyError>>,
        gathered: BytesMut,
        gzip: bool,
    ) -> Self {
        Outgoing {
            gathered,
            packer: gzip.then(Packer::default),
            sender,
        }
    }

    /// Where small pieces are written; [`Outgoing::flush`] sends them when they are enough.
    pub(crate) fn gathered(&mut self) -> &mut BytesMut {
        &mut self.gathered
    }

    /// Sends what was gathered if that is enough for a piece.
    pub(crate) async fn flush(&mut self) -> Result<(), Halt> {
        match self.gathered.len() >= PIECE {
            true => self.send_gathered().await,
            false => Ok(()),
        }
    }

    /// Adds a piece. A large one is not copied.
    pub(crate) async fn put(&mut self, mut bytes: Bytes) -> Result<(), Halt> {
        if bytes.len() < PIECE {
            self.gathered.extend_from_slice(&bytes);
            return self.flush().await;
        }
        self.send_gathered().await?;
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.send(piece).await?;
        }
        Ok(())
    }

    /// Sends the rest.
    pub(crate) async fn finish(mut self) -> Result<(), Halt> {
        self.send_gathered().await?;
        match self.packer.take() {
            Some(packer) => self.send(packer.finish()).await,
            None => Ok(()),
        }
    }

    async fn send_gathered(&mut self) -> Result<(), Halt> {
        let gathered = self.gathered.split().freeze();
        match gathered.is_empty() {
            true => Ok(()),
            false => self.send(gathered).await,
        }
    }

    async fn send(&mut self, bytes: Bytes) -> Result<(), Halt> {
        let bytes = match &mut self.packer {
            Some(packer) => packer.push(&bytes),
            None => bytes,
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let sent = self.sender.send(Ok(bytes)).await;
        sent.map_err(|_| Halt::Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_pieces_are_slices_and_small_ones_are_gathered() {
        let (sender, mut receiver) = mpsc::channel(1024);
        let mut out = Outgoing::new(sender, BytesMut::from("head "), false);
        let large = Bytes::from(vec![b'x'; 10 * PIECE + 1]);
        out.put(Bytes::from_static(b"small ")).await.unwrap();
        for _ in 0..3 {
            out.put(large.clone()).await.unwrap();
        }
        out.put(Bytes::from_static(b" end")).await.unwrap();
        out.finish().await.unwrap();
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push(piece.unwrap());
        }
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE));
        assert_eq!(pieces.first().unwrap(), "head small ");
        assert_eq!(pieces.last().unwrap(), " end");
        let memory = large.as_ptr_range();
        let slices = pieces.iter().filter(|p| memory.contains(&p.as_ptr()));
        assert_eq!(slices.map(Bytes::len).sum::<usize>(), 3 * large.len());
    }

    #[tokio::test]
    async fn an_answer_ends_when_its_client_leaves() {
        let (sender, receiver) = mpsc::channel(1);
        let mut out = Outgoing::new(sender, BytesMut::new(), true);
        drop(receiver);
        let random: Vec<u8> = (0..300_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let halted = out.put(random.into()).await.is_err() || out.finish().await.is_err();
        assert!(halted);
    }
}
