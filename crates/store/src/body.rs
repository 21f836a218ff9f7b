//! Bodies as rows. Small ones lie as they are; from a page's size on they are compressed, by the
//! caller and never inside a transaction. A row that does not fit together is an error, not a panic.

use crate::fault::damaged;
use crate::prepare::blocking;
use bytes::Bytes;
use muster_apiserver::store::StoreError;
use muster_kind::{Body, Digest};
use std::collections::{BTreeSet, HashMap};

/// From this size on a body is compressed.
pub(crate) const PACK_FROM: usize = 4096;
/// zstd's own default: what is above costs time and saves little.
const LEVEL: i32 = 3;
const PLAIN: i64 = 0;
const PACKED: i64 = 1;
/// Offset and digest of one blob.
const REFERENCE: usize = 8 + 32;

/// A body as its row holds it.
#[derive(Clone, Debug)]
pub(crate) struct BodyRow {
    pub(crate) revision_at: i64,
    pub(crate) form: i64,
    pub(crate) blobs: Option<Vec<u8>>,
    pub(crate) text: Bytes,
    /// The blobs it refers to, each once.
    pub(crate) digests: BTreeSet<Digest>,
}

impl BodyRow {
    /// Lays a body out. Compresses, so large ones belong on a blocking thread.
    pub(crate) fn pack(body: &Body) -> Result<Self, StoreError> {
        let (form, text) = match body.text.len() {
            size if size < PACK_FROM => (PLAIN, body.text.clone()),
            _ => (PACKED, compress(&body.text)?),
        };
        let mut blobs = Vec::with_capacity(body.blobs.len() * REFERENCE);
        for (at, digest) in &body.blobs {
            blobs.extend_from_slice(&(*at as u64).to_be_bytes());
            blobs.extend_from_slice(&digest.0);
        }
        Ok(BodyRow {
            revision_at: body.revision_at as i64,
            form,
            blobs: (!blobs.is_empty()).then_some(blobs),
            text,
            digests: body.blobs.iter().map(|(_, digest)| *digest).collect(),
        })
    }

    /// Puts a body together from its columns.
    pub(crate) fn assemble(
        revision_at: i64,
        form: i64,
        blobs: Option<&[u8]>,
        text: &[u8],
    ) -> Result<Body, StoreError> {
        let text = match form {
            PLAIN => Bytes::copy_from_slice(text),
            PACKED => expand(text)?,
            _ => return Err(damaged("a body has an unknown form")),
        };
        let revision_at = usize::try_from(revision_at).unwrap_or(usize::MAX);
        Body::checked(text, revision_at, references(blobs.unwrap_or_default())?)
            .ok_or_else(|| damaged("a body's holes lie outside of it"))
    }
}

/// Compresses bytes of any size.
pub(crate) fn compress(bytes: &[u8]) -> Result<Bytes, StoreError> {
    let packed = zstd::bulk::compress(bytes, LEVEL);
    packed
        .map(Bytes::from)
        .map_err(|source| StoreError::Engine {
            attempt: "compressing",
            source: source.into(),
        })
}

/// Reads back what [`compress`] wrote; the frame says how much it is.
pub(crate) fn expand(bytes: &[u8]) -> Result<Bytes, StoreError> {
    let size = zstd::zstd_safe::get_frame_content_size(bytes)
        .ok()
        .flatten();
    let size = size.ok_or_else(|| damaged("compressed bytes do not say their size"))?;
    let plain = zstd::bulk::decompress(bytes, usize::try_from(size).unwrap_or(usize::MAX));
    plain.map(Bytes::from).map_err(|source| StoreError::Engine {
        attempt: "decompressing",
        source: source.into(),
    })
}

/// Reads back several, by their digests.
pub(crate) async fn expand_all(
    rows: Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<HashMap<Digest, Bytes>, StoreError> {
    let size = rows.iter().map(|(_, packed)| packed.len()).sum();
    let expand_row = |(digest, packed): (Vec<u8>, Vec<u8>)| {
        let digest = digest.first_chunk::<32>();
        let digest = digest.ok_or_else(|| damaged("a blob's digest is cut short"))?;
        Ok((Digest(*digest), expand(&packed)?))
    };
    blocking(size, move || rows.into_iter().map(expand_row).collect()).await
}

pub(crate) fn references(packed: &[u8]) -> Result<Vec<(usize, Digest)>, StoreError> {
    let wrong = || damaged("a body's references to blobs are cut short");
    let (chunks, rest) = packed.as_chunks::<REFERENCE>();
    if !rest.is_empty() {
        return Err(wrong());
    }
    chunks
        .iter()
        .map(|chunk| {
            let (at, digest) = chunk.split_first_chunk::<8>().ok_or_else(wrong)?;
            let digest = digest.first_chunk::<32>().ok_or_else(wrong)?;
            Ok((u64::from_be_bytes(*at) as usize, Digest(*digest)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bytes_come_back_whole() {
        for bytes in [
            Vec::new(),
            vec![7; 10],
            (0..100_000u32)
                .map(|n| (n.wrapping_mul(n) >> 3) as u8)
                .collect(),
        ] {
            assert_eq!(expand(&compress(&bytes).unwrap()).unwrap(), bytes);
        }
        assert!(expand(b"no frame").is_err());
    }

    #[test]
    fn references_cut_short_are_an_error() {
        assert!(references(&[0; REFERENCE + 1]).is_err());
        assert_eq!(references(&[0; REFERENCE]).unwrap(), [(0, Digest([0; 32]))]);
    }
}
