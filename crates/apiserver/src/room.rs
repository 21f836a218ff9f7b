//! Room for request bodies and the trees that are made of them. All requests share it, so that many large ones at once cannot
//! take the process' memory; who finds none is told to come again. A body keeps its room for as
//! long as anything refers to its bytes.

use bytes::{Bytes, BytesMut};
use muster_kind::Status;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is given in pieces of this size.
const PIECE: usize = 64 * 1024;
/// A tree of up to this size needs no room: ordinary requests are no danger.
const FREE_TREE: usize = 1024 * 1024;
/// How often a tree is in memory while it is written: as it was sent, as it was stored before, with who owns
/// which field, and as text.
const COPIES: usize = 4;
/// How long a body whose size is known waits for its room.
const PATIENCE: Duration = Duration::from_secs(10);
/// When whoever was sent away may come again, in seconds.
const AGAIN: u64 = 2;

/// The room all bodies share.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pieces: Arc<Semaphore>,
    /// Apart from that of bodies: a body that waits for all of its room takes what is free.
    trees: Arc<Semaphore>,
    patience: Duration,
}

/// A body that grows within its room.
#[derive(Debug)]
pub(crate) struct Growing {
    room: Room,
    taken: Option<OwnedSemaphorePermit>,
    bytes: BytesMut,
}

/// Bytes and the room they take.
struct Held {
    bytes: Bytes,
    _taken: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Room {
            pieces: Arc::new(Semaphore::new(bytes / PIECE)),
            trees: Arc::new(Semaphore::new(bytes / PIECE)),
            patience: PATIENCE,
        }
    }

    /// Room for the tree of a body and its copies, if that is free at once.
    pub(crate) fn for_tree(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Status> {
        if bytes <= FREE_TREE {
            return Ok(None);
        }
        let needed = pieces(bytes.saturating_mul(COPIES));
        let taken = self.trees.clone().try_acquire_many_owned(needed);
        taken.map(Some).map_err(|_| full())
    }

    /// Starts a body; one whose size is known waits until there is room for all of it, so that
    /// two halves never wait for each other.
    pub(crate) async fn start(&self, declared: Option<usize>) -> Result<Growing, Status> {
        let mut growing = Growing {
            room: self.clone(),
            taken: None,
            bytes: BytesMut::new(),
        };
        // The first piece is free: small bodies are no danger.
        if let Some(size) = declared.filter(|size| *size > PIECE) {
            let permits = self.pieces.clone().acquire_many_owned(pieces(size));
            let taken = tokio::time::timeout(self.patience, permits).await;
            growing.taken = Some(taken.ok().and_then(Result::ok).ok_or_else(full)?);
        }
        Ok(growing)
    }
}

impl Growing {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes. A body that outgrows what it has takes more only if that is free at once.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Status> {
        let needed = pieces(self.bytes.len() + data.len());
        let has = self.taken.as_ref().map_or(0, |taken| taken.num_permits()) as u32;
        if needed > has.max(1) {
            let more = self
                .room
                .pieces
                .clone()
                .try_acquire_many_owned(needed - has);
            let more = more.map_err(|_| full())?;
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                None => self.taken = Some(more),
            }
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// The body so far, which stays in its room.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The body; its room is free again when the last of its bytes is dropped.
    pub(crate) fn finish(self) -> Bytes {
        match self.taken {
            None => self.bytes.freeze(),
            taken => Bytes::from_owner(Held {
                bytes: self.bytes.freeze(),
                _taken: taken,
            }),
        }
    }
}

fn pieces(size: usize) -> u32 {
    u32::try_from(size.div_ceil(PIECE)).unwrap_or(u32::MAX)
}

fn full() -> Status {
    Status::too_many(
        "too many large requests are under way; please try again later",
        AGAIN,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_free_again_when_the_last_byte_is_dropped() {
        let room = Room::new(4 * PIECE);
        let mut body = room.start(Some(3 * PIECE)).await.unwrap();
        body.push(&vec![7; 3 * PIECE]).unwrap();
        let slice = body.finish().slice(5..6);
        let mut other = room.start(None).await.unwrap();
        let refused = other.push(&vec![7; 2 * PIECE]).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (429, Some(AGAIN)));
        drop(slice);
        other.push(&vec![7; 4 * PIECE]).unwrap();
    }

    #[tokio::test]
    async fn a_large_tree_takes_room_until_its_request_is_answered() {
        let room = Room::new(2 * FREE_TREE * COPIES + PIECE);
        assert!(room.for_tree(FREE_TREE).unwrap().is_none());
        let first = room.for_tree(FREE_TREE + 1).unwrap();
        let refused = room.for_tree(2 * FREE_TREE).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (429, Some(AGAIN)));
        drop(first);
        assert!(room.for_tree(2 * FREE_TREE).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_body_that_waits_leaves_trees_their_room() {
        let room = Room::new(4 * FREE_TREE * COPIES);
        let all = room.start(Some(4 * FREE_TREE * COPIES)).await.unwrap();
        assert!(room.for_tree(2 * FREE_TREE).unwrap().is_some());
        drop(all);
    }

    #[tokio::test]
    async fn who_waits_too_long_is_told_to_come_again() {
        let mut room = Room::new(2 * PIECE);
        let first = room.start(Some(2 * PIECE)).await.unwrap();
        let waiting = tokio::spawn({
            let room = room.clone();
            async move { room.start(Some(2 * PIECE)).await.map(|body| body.len()) }
        });
        room.patience = Duration::ZERO;
        assert_eq!(room.start(Some(2 * PIECE)).await.unwrap_err().code, 429);
        drop(first);
        assert_eq!(waiting.await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn small_bodies_need_no_room() {
        let room = Room::new(0);
        let mut body = room.start(Some(100)).await.unwrap();
        body.push(&[1; 100]).unwrap();
        assert_eq!(body.finish().len(), 100);
    }
}
