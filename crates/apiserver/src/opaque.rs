//! The bytes of opaque fields for answers that show one or many objects: read for several fields at once, in
//! the order in which they are shown, each once if it is shown again soon, and never more than a bounded
//! amount ahead.

use crate::failure::store_failure;
use crate::store::{Store, StoreError};
use bytes::Bytes;
use muster_kind::{Body, Digest, Status};
use std::collections::{HashMap, HashSet, VecDeque};

/// How many bytes are read at once, and how many are kept for later fields; a single field may be larger.
const AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// How many fields are asked for at once.
const AHEAD: usize = 500;
/// How many of the next fields are considered.
const WINDOW: usize = 1000;

/// Why an object cannot be shown.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The store no longer has these bytes.
    Missing(Digest),
    /// The store failed.
    Store(StoreError),
}

impl From<Lost> for Status {
    /// For objects that are there: then their bytes should be, too.
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Missing(digest) => {
                Status::internal(format!("the bytes of {digest} are missing from the store"))
            }
            Lost::Store(error) => store_failure(error),
        }
    }
}

/// The opaque bytes of some objects, one field after the other.
pub(crate) struct Opaque {
    /// The next fields in order.
    due: VecDeque<Digest>,
    /// The fields behind them.
    later: Box<dyn Iterator<Item = Digest> + Send>,
    read: HashMap<Digest, Bytes>,
}

impl Opaque {
    /// For these objects, in the order in which they will be shown.
    pub(crate) fn new<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Self {
        let bodies = bodies.into_iter().filter(|body| !body.is_plain());
        let fields: Vec<_> = bodies.map(Body::digests).collect();
        Opaque {
            due: VecDeque::new(),
            later: Box::new(fields.into_iter().flatten()),
            read: HashMap::new(),
        }
    }

    /// Reads the first fields, so that what is missing shows before the answer begins. Returns the size of
    /// all fields if all of them have been read.
    pub(crate) async fn start(&mut self, store: &dyn Store) -> Result<Option<usize>, Lost> {
        self.look_ahead();
        if let Some(first) = self.due.front().copied() {
            self.load(store, &first).await?;
        }
        if self.due.len() == WINDOW {
            return Ok(None);
        }
        let sizes = self.due.iter().map(|digest| self.read.get(digest));
        Ok(sizes.map(|bytes| bytes.map(Bytes::len)).sum())
    }

    /// All that has been read and not been dropped since.
    pub(crate) fn read(&self) -> &HashMap<Digest, Bytes> {
        &self.read
    }

    /// The bytes of the next field, which has this digest.
    pub(crate) async fn next(&mut self, store: &dyn Store, digest: &Digest) -> Result<Bytes, Lost> {
        self.look_ahead();
        let bytes = self.load(store, digest).await?;
        self.due.pop_front();
        Ok(bytes)
    }

    async fn load(&mut self, store: &dyn Store, digest: &Digest) -> Result<Bytes, Lost> {
        if let Some(bytes) = self.read.get(digest) {
            return Ok(bytes.clone());
        }
        let wanted = self.wanted(digest);
        let read = store.blobs(&wanted, AHEAD_BYTES).await;
        self.read.extend(read.map_err(Lost::Store)?);
        let bytes = self.read.get(digest);
        bytes.cloned().ok_or(Lost::Missing(*digest))
    }

    fn look_ahead(&mut self) {
        if self.due.len() < WINDOW / 2 {
            let room = WINDOW - self.due.len();
            self.due.extend(self.later.by_ref().take(room));
        }
    }

    /// What to read when a field is not there: it and those that follow. Drops what is not shown again soon,
    /// and what is too much to keep.
    fn wanted(&mut self, digest: &Digest) -> Vec<Digest> {
        let mut wanted = vec![*digest];
        let mut seen = HashSet::from([*digest]);
        let mut kept = 0;
        let mut soon = HashMap::new();
        for next in &self.due {
            if !seen.insert(*next) {
                continue;
            }
            match self.read.remove(next) {
                Some(bytes) => {
                    kept += bytes.len() as u64;
                    if kept <= AHEAD_BYTES {
                        soon.insert(*next, bytes);
                    }
                }
                None if wanted.len() < AHEAD => wanted.push(*next),
                None => {}
            }
        }
        self.read = soon;
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opaque(order: impl Iterator<Item = u8> + Send + 'static) -> Opaque {
        Opaque {
            due: VecDeque::new(),
            later: Box::new(order.map(|number| Digest([number; 32]))),
            read: HashMap::new(),
        }
    }

    /// Shows all fields, each of so many bytes, and returns how many were read and the most bytes held.
    fn show(mut opaque: Opaque, size: usize) -> (usize, usize) {
        let (mut reads, mut most) = (0, 0);
        loop {
            opaque.look_ahead();
            let Some(next) = opaque.due.front().copied() else {
                return (reads, most);
            };
            if !opaque.read.contains_key(&next) {
                // The store gives what fits, and the first in any case.
                let fit = (AHEAD_BYTES as usize / size).max(1);
                for digest in opaque.wanted(&next).into_iter().take(fit) {
                    opaque.read.insert(digest, Bytes::from(vec![0; size]));
                    reads += 1;
                }
            }
            let held = opaque.read.values().map(Bytes::len).sum();
            most = most.max(held);
            opaque.due.pop_front();
        }
    }

    #[test]
    fn what_many_containers_share_is_read_once_and_little_is_held() {
        const MB: usize = 1_000_000;
        for (what, order, size, reads) in [
            ("one image", vec![1; 500], MB, 1),
            ("one large image", vec![1; 500], 20 * MB, 1),
            ("few images in turn", [1, 2, 3].repeat(200), MB, 3),
            ("many images", (0..200).collect(), MB, 200),
        ] {
            let (read, held) = show(opaque(order.into_iter()), size);
            assert_eq!(read, reads, "{what}");
            let limit = (2 * AHEAD_BYTES as usize).max(size);
            assert!(held <= limit, "{what}: {held}");
        }
    }

    #[test]
    fn a_list_without_end_is_looked_at_in_pieces() {
        let mut endless = opaque(std::iter::repeat_n(0..=255, 1_000_000_000).flatten());
        endless.look_ahead();
        assert_eq!(endless.due.len(), WINDOW);
        assert_eq!(endless.wanted(&Digest([0; 32])).len(), 256);
    }
}
