//! The old format, a Berkeley DB hash: pages of keys and values, where each record is too large
//! for a page and lies on a chain of pages of its own.

use super::{Damaged, slice};

const MAGIC: u32 = 0x0006_1561;
const PAGE_HEADER: usize = 26;
const OVERFLOW: u8 = 7;
/// Pages of a hash, in the older and the newer form.
const HASH: [u8; 2] = [2, 13];
/// A value that lies on pages of its own.
const OFF_PAGE: u8 = 3;
/// A record beyond this is none.
const MAX_RECORD: usize = 64 * 1024 * 1024;

/// Numbers in the byte order of the machine that wrote the file.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn word(self, bytes: &[u8], offset: usize) -> Option<usize> {
        let bytes: [u8; 4] = slice(bytes, offset, 4)?.try_into().ok()?;
        let word = if self.is_big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        };
        usize::try_from(word).ok()
    }

    fn half(self, bytes: &[u8], offset: usize) -> Option<usize> {
        let bytes: [u8; 2] = slice(bytes, offset, 2)?.try_into().ok()?;
        Some(usize::from(if self.is_big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }))
    }
}

fn order(file: &[u8]) -> Option<Order> {
    let orders = [Order { is_big: false }, Order { is_big: true }];
    orders
        .into_iter()
        .find(|order| order.word(file, 12) == Some(MAGIC as usize))
}

pub(super) fn is_one(file: &[u8]) -> bool {
    order(file).is_some()
}

pub(super) fn walk(file: &[u8], take: &mut impl FnMut(&[u8])) -> Result<(), Damaged> {
    let cut = Damaged("is cut off");
    let order = order(file).ok_or(cut)?;
    let size = order.word(file, 20).ok_or(cut)?;
    if !size.is_power_of_two() || !(512..=65536).contains(&size) {
        return Err(Damaged("has pages of an impossible size"));
    }
    let last = order.word(file, 32).ok_or(cut)?;
    // Each page of the file may serve one record, so that no chain is walked twice.
    let mut budget = file.len() / size;
    for number in 0..=last {
        let page = number
            .checked_mul(size)
            .and_then(|start| slice(file, start, size));
        let page = page.ok_or(cut)?;
        if !HASH.contains(&page[25]) {
            continue;
        }
        let entries = order.half(page, 20).ok_or(cut)?;
        // Keys and values take turns.
        for value in (1..entries).step_by(2) {
            let offset = order.half(page, PAGE_HEADER + 2 * value).ok_or(cut)?;
            let Some(entry) = slice(page, offset, 12).filter(|entry| entry[0] == OFF_PAGE) else {
                continue;
            };
            let first = order.word(entry, 4).ok_or(cut)?;
            let length = order.word(entry, 8).ok_or(cut)?;
            take(&chain(file, size, order, first, length, &mut budget)?);
        }
    }
    Ok(())
}

/// The bytes on a chain of pages.
fn chain(
    file: &[u8],
    size: usize,
    order: Order,
    first: usize,
    length: usize,
    budget: &mut usize,
) -> Result<Vec<u8>, Damaged> {
    let cut = Damaged("is cut off");
    let mut bytes = Vec::new();
    let mut number = first;
    while number != 0 && bytes.len() < length {
        *budget = budget
            .checked_sub(1)
            .ok_or(Damaged("has pages in a circle"))?;
        let page = number
            .checked_mul(size)
            .and_then(|start| slice(file, start, size));
        let page = page.ok_or(cut)?;
        if page[25] != OVERFLOW || length > MAX_RECORD {
            return Err(Damaged("has a record that is not where it should be"));
        }
        let used = order.half(page, 22).ok_or(cut)?;
        bytes.extend(slice(page, PAGE_HEADER, used).ok_or(cut)?);
        number = order.word(page, 16).ok_or(cut)?;
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::database as read;
    use super::super::header::tests::openssl;
    use super::*;

    const SIZE: usize = 512;

    fn page(kind: u8, next: u32, entries: u16, used: u16) -> Vec<u8> {
        let mut page = vec![0; SIZE];
        page[16..20].copy_from_slice(&next.to_le_bytes());
        page[20..22].copy_from_slice(&entries.to_le_bytes());
        page[22..24].copy_from_slice(&used.to_le_bytes());
        page[25] = kind;
        page
    }

    pub(crate) fn database(records: &[&[u8]]) -> Vec<u8> {
        let mut hash = page(13, 0, records.len() as u16 * 2, 0);
        let mut chains: Vec<Vec<u8>> = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let offset = 200 + place * 12;
            let index = PAGE_HEADER + 2 * (2 * place + 1);
            hash[index..index + 2].copy_from_slice(&(offset as u16).to_le_bytes());
            hash[offset] = OFF_PAGE;
            let first = 2 + chains.len() as u32;
            hash[offset + 4..offset + 8].copy_from_slice(&first.to_le_bytes());
            hash[offset + 8..offset + 12].copy_from_slice(&(record.len() as u32).to_le_bytes());
            let pieces: Vec<&[u8]> = record.chunks(SIZE - PAGE_HEADER).collect();
            for (number, piece) in pieces.iter().enumerate() {
                let is_last = number + 1 == pieces.len();
                let next = if is_last {
                    0
                } else {
                    first + number as u32 + 1
                };
                let mut page = page(OVERFLOW, next, 0, piece.len() as u16);
                page[PAGE_HEADER..PAGE_HEADER + piece.len()].copy_from_slice(piece);
                chains.push(page);
            }
        }
        let mut meta = page(8, 0, 0, 0);
        meta[12..16].copy_from_slice(&MAGIC.to_le_bytes());
        meta[20..24].copy_from_slice(&(SIZE as u32).to_le_bytes());
        meta[32..36].copy_from_slice(&(1 + chains.len() as u32).to_le_bytes());
        [vec![meta, hash], chains].concat().concat()
    }

    #[test]
    fn records_are_put_together_from_their_pages() {
        let reading = read(&database(&[&openssl(), &openssl()]));
        assert_eq!(
            (reading.packages.len(), reading.problems.len()),
            (2, 0),
            "{reading:?}"
        );
    }

    #[test]
    fn a_chain_in_a_circle_ends() {
        let mut file = database(&[&[0; 2000]]);
        let second = 3 * SIZE + 16;
        file[second..second + 4].copy_from_slice(&2_u32.to_le_bytes());
        let entry = SIZE + 200 + 8;
        file[entry..entry + 4].copy_from_slice(&50_000_u32.to_le_bytes());
        assert_eq!(
            read(&file).problems,
            ["the package database has pages in a circle"]
        );
    }
}
