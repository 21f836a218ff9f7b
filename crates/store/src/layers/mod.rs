//! Inventories of layers, shared by all who scan: what one has read nobody fetches again. A layer is
//! named by its diff ID, and its inventory depends on that and on the analyzers' version alone, so
//! an entry never changes: the first one stays, and one that comes later with other content is
//! refused. It is a cache: whatever is lost or damaged is read from the registry again, and what
//! nobody has used for long, or what there is too much of, is forgotten.

mod postgres;
mod sqlite;

pub use postgres::PostgresLayers;
pub use sqlite::SqliteLayers;

use crate::body::{compress, expand};
use crate::prepare::blocking;
use async_trait::async_trait;
use bytes::Bytes;
use muster_apiserver::store::StoreError;
use muster_kind::Digest;
use std::fmt;
use std::time::Duration;

/// The largest inventory that is kept, in bytes before compression.
pub const LARGEST_LAYER: usize = 16 * 1024 * 1024;
/// The longest version of analyzers.
const LONGEST_VERSION: usize = 64;
/// An entry's use is noted at most this often, so that reading rarely writes.
const NOTED: Duration = Duration::from_secs(24 * 3600);
/// Entries that are looked at, and go, in one step.
const STEP: i64 = 100;

/// Which inventory: of which layer, made by which analyzers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LayerKey {
    diff_id: Digest,
    analyzers: String,
}

/// Why something is not the key of an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerKeyError {
    /// The diff ID is not one.
    #[error("a diff ID is `sha256:` and 64 lower-case hexadecimal digits")]
    DiffId,
    /// The version is not one.
    #[error(
        "a version of analyzers is 1 to {LONGEST_VERSION} letters, digits, dots, dashes and underscores"
    )]
    Analyzers,
}

impl LayerKey {
    /// Reads a key; every key has one form only.
    pub fn parse(diff_id: &str, analyzers: &str) -> Result<Self, LayerKeyError> {
        let digest = Digest::parse(diff_id).filter(|digest| digest.to_string() == diff_id);
        let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if !(1..=LONGEST_VERSION).contains(&analyzers.len()) || !analyzers.bytes().all(word) {
            return Err(LayerKeyError::Analyzers);
        }
        Ok(LayerKey {
            diff_id: digest.ok_or(LayerKeyError::DiffId)?,
            analyzers: analyzers.into(),
        })
    }
}

impl fmt::Display for LayerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by analyzers {}", self.diff_id, self.analyzers)
    }
}

/// What is known of an inventory without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerAbout {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

/// What became of an inventory that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerPut {
    /// It is kept now.
    New,
    /// It was there already, the same to the byte.
    Same,
    /// Another one was there, and stays.
    Different,
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerLimits {
    /// What nobody has used for this long is forgotten. Uses are noted once a day.
    pub unused: Duration,
    /// All entries together take no more than this, compressed; those longest unused go first.
    pub bytes: u64,
}

impl Default for LayerLimits {
    fn default() -> Self {
        LayerLimits {
            unused: Duration::from_secs(30 * 24 * 3600),
            bytes: 4 * 1024 * 1024 * 1024,
        }
    }
}

/// Where inventories are kept.
#[async_trait]
pub trait Layers: Send + Sync + 'static {
    /// An inventory, whole and undamaged, or none.
    async fn get(&self, key: &LayerKey) -> Result<Option<(LayerAbout, Bytes)>, StoreError>;

    /// What is known of an inventory, or none.
    async fn about(&self, key: &LayerKey) -> Result<Option<LayerAbout>, StoreError>;

    /// Keeps an inventory of at most [`LARGEST_LAYER`] bytes, unless there is one.
    async fn put(&self, key: &LayerKey, bytes: Bytes) -> Result<LayerPut, StoreError>;

    /// Forgets an inventory; whether there was one.
    async fn forget(&self, key: &LayerKey) -> Result<bool, StoreError>;

    /// Forgets what is beyond the limits; how many entries went.
    async fn upkeep(&self, limits: LayerLimits) -> Result<u64, StoreError>;
}

/// An inventory as its row holds it.
struct Packed {
    about: LayerAbout,
    zstd: Bytes,
}

impl Packed {
    async fn pack(bytes: Bytes) -> Result<Packed, StoreError> {
        if bytes.len() > LARGEST_LAYER {
            return Err(StoreError::Engine {
                attempt: "keeping the inventory of a layer",
                source: format!("it has {} bytes", bytes.len()).into(),
            });
        }
        blocking(bytes.len(), move || {
            let about = LayerAbout {
                digest: Digest::of(&bytes),
                size: bytes.len() as u64,
            };
            let zstd = compress(&bytes)?;
            Ok(Packed { about, zstd })
        })
        .await
    }
}

/// The columns of a row, as far as they make sense.
fn about(sha256: &[u8], size: i64) -> Option<LayerAbout> {
    let digest = Digest(sha256.try_into().ok()?);
    let size = u64::try_from(size).ok()?;
    (size <= LARGEST_LAYER as u64).then_some(LayerAbout { digest, size })
}

/// The bytes of a row; none if they are not what was once packed.
async fn unpack(about: LayerAbout, packed: Vec<u8>) -> Result<Option<Bytes>, StoreError> {
    let size = usize::try_from(about.size).unwrap_or(usize::MAX);
    blocking(size, move || {
        // What the frame claims is what is allocated.
        let claimed = zstd::zstd_safe::get_frame_content_size(&packed);
        if claimed.ok().flatten() != Some(about.size) {
            return Ok(None);
        }
        let plain = expand(&packed).ok();
        Ok(plain.filter(|plain| Digest::of(plain) == about.digest))
    })
    .await
}

/// An entry as upkeep sees it: when it was last used, and what it takes.
#[derive(Clone, Copy, Debug)]
struct Weight {
    used: i64,
    packed: i64,
}

/// How many of the entries, longest unused first, must go: those not used since `since`, and as
/// many as it takes to bring the total within the limit.
fn surplus(oldest: impl IntoIterator<Item = Weight>, since: i64, total: i64, limit: u64) -> usize {
    let mut rest = i128::from(total);
    let goes = |weight: &Weight| {
        let goes = weight.used < since || rest > i128::from(limit);
        rest -= i128::from(weight.packed);
        goes
    };
    oldest.into_iter().take_while(goes).count()
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form() {
        let hex = "0123456789abcdef".repeat(4);
        let good = format!("sha256:{hex}");
        assert!(LayerKey::parse(&good, "1").is_ok());
        assert!(LayerKey::parse(&good, &"v1.2-beta_3".repeat(5)).is_ok());
        for bad in [
            "",
            "sha256:",
            &hex,
            &format!("sha512:{hex}"),
            &format!("sha256:{}", hex.to_uppercase()),
            &format!("sha256:{}+f", &hex[2..]),
            &format!("sha256:{hex}0"),
            &format!("sha256:{}é", &hex[2..]),
            &format!(" {good}"),
        ] {
            let parsed = LayerKey::parse(bad, "1");
            assert_eq!(parsed, Err(LayerKeyError::DiffId), "{bad}");
        }
        for bad in ["", "a b", "a/b", "ü", "a\0", "%31", &"x".repeat(65)] {
            let parsed = LayerKey::parse(&good, bad);
            assert_eq!(parsed, Err(LayerKeyError::Analyzers), "{bad}");
        }
    }

    #[test]
    fn the_longest_unused_go_until_the_rest_fits() {
        let entries = || [1, 2, 3, 4].map(|used| Weight { used, packed: 10 });
        for (since, limit, gone) in [
            (0, 40, 0),
            (0, 39, 1),
            (0, 30, 1),
            (0, 11, 3),
            (0, 0, 4),
            (3, 40, 2),
            (3, 25, 2),
            (3, 15, 3),
            (9, 40, 4),
        ] {
            let count = surplus(entries(), since, 40, limit);
            assert_eq!(count, gone, "since {since}, limit {limit}");
        }
        assert_eq!(surplus([], 9, 0, 0), 0);
    }
}
