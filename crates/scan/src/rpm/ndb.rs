//! The format of SUSE: a table of slots at the start, each leading to one record.

use super::{Damaged, little, slice};

pub(super) const MAGIC: &[u8] = b"RpmP";
const PAGE: usize = 4096;
const SLOT: usize = 16;
/// The table's own header takes the place of the first two slots.
const FIRST: usize = 2 * SLOT;
const BLOCK: usize = 16;
/// Slots beyond these are no real table.
const MAX_SLOT_PAGES: usize = 2048;

pub(super) fn walk(file: &[u8], take: &mut impl FnMut(&[u8])) -> Result<(), Damaged> {
    let cut = Damaged("is cut off");
    let pages = little(file, 12).and_then(|pages| usize::try_from(pages).ok());
    let pages = pages.filter(|pages| *pages <= MAX_SLOT_PAGES).ok_or(cut)?;
    let table = file.get(FIRST..pages * PAGE).ok_or(cut)?;
    for slot in table.chunks_exact(SLOT) {
        if !slot.starts_with(b"Slot") {
            return Err(Damaged("has a slot that is none"));
        }
        let field = |offset| little(slot, offset).and_then(|field| usize::try_from(field).ok());
        let (Some(package), Some(block)) = (little(slot, 4), field(8)) else {
            continue;
        };
        if package == 0 {
            continue;
        }
        let start = block.checked_mul(BLOCK).ok_or(cut)?;
        let header = slice(file, start, BLOCK).ok_or(cut)?;
        if !header.starts_with(b"BlbS") || little(header, 4) != Some(package) {
            return Err(Damaged("has a record that is not where it should be"));
        }
        let length = little(header, 12).and_then(|length| usize::try_from(length).ok());
        take(slice(file, start + BLOCK, length.ok_or(cut)?).ok_or(cut)?);
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::database as read;
    use super::super::header::tests::openssl;
    use super::*;

    pub(crate) fn database(records: &[&[u8]]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for field in [0_u32, 1, 1, 2, 0, 0, 0] {
            file.extend(field.to_le_bytes());
        }
        let mut blobs = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let number = place as u32 + 1;
            file.extend(b"Slot");
            file.extend(number.to_le_bytes());
            file.extend(((PAGE + blobs.len()) as u32 / BLOCK as u32).to_le_bytes());
            file.extend((record.len() as u32).div_ceil(16).to_le_bytes());
            blobs.extend(b"BlbS");
            for field in [number, 1, record.len() as u32] {
                blobs.extend(field.to_le_bytes());
            }
            blobs.extend(*record);
            blobs.resize(blobs.len().next_multiple_of(BLOCK), 0);
        }
        while file.len() < PAGE {
            file.extend(b"Slot\0\0\0\0\0\0\0\0\0\0\0\0");
        }
        file.extend(blobs);
        file
    }

    #[test]
    fn records_are_found_through_their_slots() {
        let reading = read(&database(&[&openssl(), &openssl()]));
        assert_eq!((reading.packages.len(), reading.problems.len()), (2, 0));
        let cut = &database(&[&openssl()])[..PAGE + 40];
        assert_eq!(read(cut).problems, ["the package database is cut off"]);
    }
}
