//! The seam to storage. A store keeps objects as bytes under compare-and-swap, gives every change
//! of a resource the next revision of that resource's clock, and keeps a log of the changes.
//! Commit order is revision order: whoever reads the log behind a revision has missed nothing.

use async_trait::async_trait;
use bytes::Bytes;
use muster_kind::{
    Body, Digest,
    selector::{FieldSelector, LabelSelector},
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::watch;

/// A group-resource, `registries.sbomscanner.kubewarden.io`: all its versions share one clock.
pub type Resource = Arc<str>;

/// The place of an object within its resource; `namespace` is empty for cluster-wide kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace, or empty.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// An object as the store gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it lives.
    pub key: Key,
    /// The revision of its last change.
    pub revision: u64,
    /// Its bytes.
    pub body: Body,
}

/// What the store indexes of an object beside its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// The kind's selectable fields that are set, by their path `spec.registry`.
    pub fields: BTreeMap<String, String>,
    /// UIDs of the owners.
    pub owners: Vec<String>,
    /// What ties it to objects that are computed from others, or to those they come from.
    pub links: BTreeSet<String>,
}

/// How much of a computed object is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What its table shows.
    Brief,
    /// All of it.
    Full,
}

/// What an object must be for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such object.
    Absent,
    /// The object's last change had this revision.
    Revision(u64),
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object becomes this.
    Put {
        /// The new bytes.
        body: Body,
        /// The new index entries.
        index: Index,
        /// Bytes of opaque fields the store may not have yet.
        blobs: BTreeMap<Digest, Bytes>,
    },
    /// The object goes; the event carries these bytes, its last state.
    Delete {
        /// The last state.
        body: Body,
    },
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Whose clock it moves.
    pub resource: Resource,
    /// Which object.
    pub key: Key,
    /// Under which condition.
    pub expect: Expect,
    /// What happens.
    pub change: Change,
}

/// Which objects a list is about.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Of which resource.
    pub resource: Resource,
    /// In which namespace; `None` means all.
    pub namespace: Option<String>,
    /// Objects whose labels match.
    pub labels: LabelSelector,
    /// Objects whose fields match (`metadata.name`, `metadata.namespace` and the selectable ones).
    pub fields: FieldSelector,
    /// The state at this revision; `None` means now.
    pub at: Option<u64>,
    /// Only objects behind this key, in order of namespace and name.
    pub after: Option<Key>,
    /// At most so many.
    pub limit: usize,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The revision whose state this is.
    pub revision: u64,
    /// The objects, in order of namespace and name.
    pub items: Vec<Stored>,
    /// There are objects behind the last one.
    pub more: bool,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It went.
    Deleted,
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct Event {
    /// The revision of the change.
    pub revision: u64,
    /// What happened.
    pub event: EventType,
    /// To which object.
    pub key: Key,
    /// Its state after the change; for [`EventType::Deleted`] its last state.
    pub body: Body,
    /// Its state before the change; `None` for [`EventType::Added`].
    pub before: Option<Body>,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A write expected no object, and there is one.
    #[error("the object exists already")]
    Exists,
    /// A write expected an object, and there is none.
    #[error("the object does not exist")]
    Missing,
    /// A write expected another revision.
    #[error("the object has changed")]
    Conflict,
    /// The state at that revision is no longer kept.
    #[error("revision {asked} is compacted; the log starts behind {compacted}")]
    Compacted {
        /// The revision asked for.
        asked: u64,
        /// The newest revision that is gone.
        compacted: u64,
    },
    /// That revision has not happened yet.
    #[error("revision {asked} is in the future; the newest is {current}")]
    Future {
        /// The revision asked for.
        asked: u64,
        /// The newest revision.
        current: u64,
    },
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The database cannot be reached, or is too busy to answer in time. What was asked may be
    /// asked again; a write may have happened although nobody could say so.
    #[error("the database is not available: {attempt}")]
    Unavailable {
        /// What was being done.
        attempt: &'static str,
        /// Why it did not work.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
    /// The engine failed.
    #[error("{attempt}")]
    Engine {
        /// What was being done.
        attempt: &'static str,
        /// Why it did not work.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Storage of objects, their history and their blobs.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// One object, or none.
    async fn get(&self, resource: &Resource, key: &Key) -> Result<Option<Stored>, StoreError>;

    /// A page of objects, all of one revision.
    async fn list(&self, query: ListQuery) -> Result<Page, StoreError>;

    /// How many objects of a namespace (or of all) lie behind a key, now.
    async fn count(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> Result<u64, StoreError>;

    /// Writes, and returns the revision of the change. The write is durable when this returns.
    async fn write(&self, write: Write) -> Result<u64, StoreError>;

    /// At most `limit` entries of the log behind a revision, in order.
    /// [`StoreError::Compacted`] if the log no longer reaches back that far,
    /// [`StoreError::Future`] if `after` has not happened yet.
    async fn events(
        &self,
        resource: &Resource,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// Adds to stored objects of a resource the fields that are computed from others, as these
    /// are now: to as many as fit into a memory budget, and to the first in any case. A change of
    /// what they are computed from is a change of them, with a revision and an event of its own.
    async fn compute(
        &self,
        resource: &Resource,
        bodies: Vec<Body>,
        detail: Detail,
    ) -> Result<Vec<Body>, StoreError>;

    /// The newest revision of a resource, read from the database; 1 if nothing was ever written.
    async fn revision(&self, resource: &Resource) -> Result<u64, StoreError>;

    /// A hint that the log has grown: the newest revision this process knows of. It may lag and
    /// may skip; whoever follows the log polls beside it.
    fn hint(&self, resource: &Resource) -> watch::Receiver<u64>;

    /// The bytes of an opaque field.
    async fn blob(&self, digest: &Digest) -> Result<Option<Bytes>, StoreError>;

    /// The bytes of several opaque fields, in the order asked for, as many as fit into so many
    /// bytes, and the first in any case. What the store does not have is left out.
    async fn blobs(
        &self,
        digests: &[Digest],
        most: u64,
    ) -> Result<HashMap<Digest, Bytes>, StoreError>;

    /// Objects of any resource owned by this UID, at most `limit`.
    async fn owned(&self, uid: &str, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError>;

    /// Objects of a resource without links, those of findings that were never counted among them: an
    /// older version of the store kept neither.
    async fn unlinked(&self, resource: &Resource) -> Result<Vec<Key>, StoreError>;

    /// Whether any object of any resource has this UID.
    async fn uid_exists(&self, uid: &str) -> Result<bool, StoreError>;

    /// Objects of any resource at least one of whose owners no longer exists, at most `limit`.
    async fn dangling(&self, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError>;

    /// Forgets log entries older than `keep_seconds`, but never the newest `keep_events` of a
    /// resource, and sweeps blobs that nothing refers to. Returns how many entries went.
    async fn compact(&self, keep_seconds: u64, keep_events: u64) -> Result<u64, StoreError>;
}
