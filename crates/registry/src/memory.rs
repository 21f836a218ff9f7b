//! Manifests and configurations that were read a moment ago. They are asked for twice on the way of an
//! image, once to learn that it is there and once to learn what is in it, and some registries count
//! every question. What is kept was checked against its digest, and is given only to the client that
//! was let in to read it.

use crate::digest::Digest;
use crate::reference::Repository;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most bytes that are kept, of all clients together, and of one thing.
const MOST: usize = 32 << 20;
const LARGEST: usize = 256 << 10;
/// What keeping something takes beside its bytes.
const EXTRA: usize = 256;

/// Whose it is, and what.
type Key = (u64, String);

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    /// The media type that the registry gave; empty where that does not matter.
    pub(crate) media_type: String,
    pub(crate) body: Bytes,
}

/// What was read lately; the oldest goes first.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    read: HashMap<Key, Read>,
    order: VecDeque<Key>,
    bytes: usize,
}

fn key(client: u64, repository: &Repository, digest: &Digest) -> Key {
    (client, format!("{repository}@{digest}"))
}

fn weight(key: &Key, read: &Read) -> usize {
    EXTRA + key.1.len() + read.media_type.len() + read.body.len()
}

impl Memory {
    pub(crate) fn find(
        &self,
        client: u64,
        repository: &Repository,
        digest: &Digest,
    ) -> Option<Read> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.read.get(&key(client, repository, digest)).cloned()
    }

    /// Keeps what was checked.
    pub(crate) fn keep(
        &self,
        client: u64,
        repository: &Repository,
        digest: &Digest,
        media_type: &str,
        body: &Bytes,
    ) {
        if body.len() > LARGEST {
            return;
        }
        let key = key(client, repository, digest);
        let read = Read {
            media_type: media_type.into(),
            // A copy: a piece of a larger buffer would keep all of that.
            body: Bytes::copy_from_slice(body),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.read.contains_key(&key) {
            return;
        }
        kept.bytes += weight(&key, &read);
        kept.order.push_back(key.clone());
        kept.read.insert(key, read);
        while kept.bytes > MOST {
            let Some(oldest) = kept.order.pop_front() else {
                return;
            };
            if let Some(read) = kept.read.remove(&oldest) {
                kept.bytes = kept.bytes.saturating_sub(weight(&oldest, &read));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Host;

    #[test]
    fn what_was_read_is_found_by_who_read_it_until_newer_things_take_its_place() {
        let host = Host::parse("registry.example").unwrap();
        let repository = Repository::on(&host, "team/app").unwrap();
        let other = Repository::on(&host, "team/other").unwrap();
        let memory = Memory::default();
        let body = Bytes::from(vec![7; LARGEST]);
        let digest = Digest::of(&body);
        memory.keep(1, &repository, &digest, "type", &body);
        let read = Read {
            media_type: "type".into(),
            body: body.clone(),
        };
        assert_eq!(memory.find(1, &repository, &digest), Some(read));
        assert_eq!(memory.find(2, &repository, &digest), None, "not let in");
        assert_eq!(memory.find(1, &other, &digest), None, "another place");

        let large = Bytes::from(vec![7; LARGEST + 1]);
        let too_large = Digest::of(&large);
        memory.keep(1, &repository, &too_large, "", &large);
        assert_eq!(memory.find(1, &repository, &too_large), None);

        for number in 0..MOST / LARGEST {
            let digest = Digest::of(&number.to_le_bytes());
            memory.keep(1, &repository, &digest, "", &body);
        }
        assert_eq!(memory.find(1, &repository, &digest), None, "the oldest");
        let kept = memory.kept.lock().unwrap();
        assert!(kept.bytes <= MOST);
        assert_eq!(kept.read.len(), kept.order.len());
        let weights = kept.read.iter().map(|(key, read)| weight(key, read));
        assert_eq!(weights.sum::<usize>(), kept.bytes);
    }
}
