//! The bytes of opaque fields for those who show many objects: read for several objects at once,
//! in the order in which they are shown, and never more than a bounded piece ahead.

use crate::failure::store_failure;
use crate::store::{Store, StoreError};
use bytes::Bytes;
use muster_kind::{Body, Digest, Status};
use std::collections::HashMap;

/// How many bytes are read at once; a single field may be larger.
const AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// How many fields are asked for at once.
const AHEAD: usize = 500;

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

/// The opaque bytes of some objects, one object after the other.
pub(crate) struct Opaque {
    /// What each of them needs.
    needs: Vec<Vec<Digest>>,
    /// The next one's number.
    at: usize,
    read: HashMap<Digest, Bytes>,
}

impl Opaque {
    /// For these objects, in the order in which they will be shown.
    pub(crate) fn new<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Self {
        let needs = |body: &Body| body.blobs.iter().map(|(_, digest)| *digest).collect();
        Opaque {
            needs: bodies.into_iter().map(needs).collect(),
            at: 0,
            read: HashMap::new(),
        }
    }

    /// The bytes of the next object's fields, and perhaps others.
    pub(crate) async fn next(
        &mut self,
        store: &dyn Store,
    ) -> Result<&HashMap<Digest, Bytes>, Lost> {
        let (here, later) = match self.needs.get(self.at..) {
            Some([here, later @ ..]) => (here, later),
            _ => return Ok(&self.read),
        };
        self.at += 1;
        loop {
            let missing = |digest: &&Digest| !self.read.contains_key(*digest);
            let Some(first) = here.iter().find(missing) else {
                return Ok(&self.read);
            };
            let mut wanted = Vec::new();
            for digest in here.iter().chain(later.iter().flatten()).filter(missing) {
                if wanted.len() == AHEAD {
                    break;
                }
                if !wanted.contains(digest) {
                    wanted.push(*digest);
                }
            }
            let read = store
                .blobs(&wanted, AHEAD_BYTES)
                .await
                .map_err(Lost::Store)?;
            if !read.contains_key(first) {
                return Err(Lost::Missing(*first));
            }
            // What was shown is not kept.
            self.read.retain(|digest, _| here.contains(digest));
            self.read.extend(read);
        }
    }
}
