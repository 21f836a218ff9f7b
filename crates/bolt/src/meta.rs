//! The meta pages: which tree is the newest. There are two, written in turns, so that one is whole
//! whenever a writer is killed; the valid one of the higher transaction counts.

use crate::page::{HEADER, u32_at, u64_at};

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// The bytes that the checksum covers.
const CHECKED: usize = 56;
/// Page sizes that writers use: the one of the machine that wrote the file.
const PAGE_SIZES: [usize; 8] = [4096, 1024, 2048, 8192, 16384, 32768, 65536, 131_072];

/// What a meta page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub page_size: usize,
    pub root: u64,
    transaction: u64,
}

/// The newest valid meta page. The first one lies at the start; where it is damaged, the second is
/// looked for at each page size that exists.
pub(crate) fn newest(file: &[u8]) -> Option<Meta> {
    let first = read(file, 0);
    let second = match first {
        Some(meta) => read(file, meta.page_size),
        None => PAGE_SIZES
            .iter()
            .filter_map(|size| read(file, *size).filter(|meta| meta.page_size == *size))
            .next(),
    };
    first
        .into_iter()
        .chain(second)
        .max_by_key(|meta| meta.transaction)
}

fn read(file: &[u8], start: usize) -> Option<Meta> {
    let record = file.get(start.checked_add(HEADER)?..)?;
    if u32_at(record, 0)? != MAGIC || u32_at(record, 4)? != VERSION {
        return None;
    }
    if fnv1a(record.get(..CHECKED)?) != u64_at(record, CHECKED)? {
        return None;
    }
    let page_size = usize::try_from(u32_at(record, 8)?).ok()?;
    PAGE_SIZES.contains(&page_size).then_some(Meta {
        page_size,
        root: u64_at(record, 16)?,
        transaction: u64_at(record, 48)?,
    })
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn file(first: u64, second: u64) -> Vec<u8> {
        let mut file = vec![0; 2 * 4096];
        for (start, transaction) in [(0, first), (4096, second)] {
            let record = &mut file[start + HEADER..];
            record[..4].copy_from_slice(&MAGIC.to_le_bytes());
            record[4..8].copy_from_slice(&VERSION.to_le_bytes());
            record[8..12].copy_from_slice(&4096_u32.to_le_bytes());
            record[16..24].copy_from_slice(&(transaction + 100).to_le_bytes());
            record[48..56].copy_from_slice(&transaction.to_le_bytes());
            let sum = fnv1a(&record[..CHECKED]);
            record[CHECKED..CHECKED + 8].copy_from_slice(&sum.to_le_bytes());
        }
        file
    }

    #[test]
    fn the_meta_page_of_the_later_transaction_counts() {
        assert_eq!(newest(&file(7, 8)).map(|meta| meta.root), Some(108));
        assert_eq!(newest(&file(9, 8)).map(|meta| meta.root), Some(109));
    }

    #[test]
    fn a_damaged_meta_page_leaves_the_other() {
        for (damaged, root) in [(20, 108), (4096 + 20, 107)] {
            let mut file = file(7, 8);
            file[damaged] ^= 1;
            assert_eq!(newest(&file).map(|meta| meta.root), Some(root));
        }
        let mut both = file(7, 8);
        both[20] ^= 1;
        both[4096 + 20] ^= 1;
        assert_eq!(newest(&both), None);
        assert_eq!(newest(&[]), None);
    }
}
