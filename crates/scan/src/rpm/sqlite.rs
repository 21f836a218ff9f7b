//! The present format, SQLite: enough of a reader to walk the one table that holds the records.
//! Nothing is written, no query is run, and a tree that leads in a circle ends.

use super::{Damaged, big, slice};

pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
const MAX_DEPTH: usize = 32;
/// A record beyond this is none.
const MAX_RECORD: usize = 64 * 1024 * 1024;
const CUT: Damaged = Damaged("is cut off");

struct File<'a> {
    bytes: &'a [u8],
    page: usize,
    /// What of a page holds data.
    usable: usize,
}

/// A column of a row.
#[derive(Clone, Copy)]
enum Column<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    Other,
}

pub(super) fn walk(bytes: &[u8], take: &mut impl FnMut(&[u8])) -> Result<(), Damaged> {
    let size = slice(bytes, 16, 2).ok_or(CUT)?;
    let page = match usize::from(size[0]) << 8 | usize::from(size[1]) {
        1 => 65536,
        page => page,
    };
    let reserved = usize::from(*bytes.get(20).ok_or(CUT)?);
    if !page.is_power_of_two() || page < 512 || reserved > page - 480 {
        return Err(Damaged("has pages of an impossible size"));
    }
    let file = File {
        bytes,
        page,
        usable: page - reserved,
    };
    let mut root = None;
    file.table(1, &mut |row| {
        let columns = columns(row);
        let is = |place: usize, text: &str| matches!(columns.get(place), Some(Column::Bytes(bytes)) if *bytes == text.as_bytes());
        if let (true, true, Some(Column::Number(page))) = (is(0, "table"), is(1, "Packages"), columns.get(3)) {
            root = usize::try_from(*page).ok();
        }
    })?;
    let root = root.ok_or(Damaged("has no table of packages"))?;
    file.table(root, &mut |row| {
        if let Some(Column::Bytes(record)) = columns(row).get(1) {
            take(record);
        }
    })
}

impl<'a> File<'a> {
    fn page(&self, number: usize) -> Result<&'a [u8], Damaged> {
        let start = number
            .checked_sub(1)
            .and_then(|number| number.checked_mul(self.page));
        start
            .and_then(|start| slice(self.bytes, start, self.page))
            .ok_or(CUT)
    }

    /// Hands every row of a table on, in the order of its tree.
    fn table(&self, root: usize, row: &mut impl FnMut(&[u8])) -> Result<(), Damaged> {
        let mut budget = self.bytes.len() / self.page;
        let mut waiting = vec![(root, 0)];
        while let Some((number, depth)) = waiting.pop() {
            budget = budget
                .checked_sub(1)
                .ok_or(Damaged("has pages in a circle"))?;
            if depth > MAX_DEPTH {
                return Err(Damaged("has a tree that is too deep"));
            }
            let page = self.page(number)?;
            // The first page starts with the header of the file.
            let start = if number == 1 { 100 } else { 0 };
            let header = slice(page, start, 12).ok_or(CUT)?;
            let count = usize::from(header[3]) << 8 | usize::from(header[4]);
            let is_leaf = match header[0] {
                LEAF => true,
                INTERIOR => false,
                _ => return Err(Damaged("has a page that is no part of a table")),
            };
            let table = start + if is_leaf { 8 } else { 12 };
            let pointers = slice(page, table, 2 * count).ok_or(CUT)?;
            let cells = pointers
                .chunks_exact(2)
                .map(|pointer| usize::from(pointer[0]) << 8 | usize::from(pointer[1]));
            if is_leaf {
                for cell in cells {
                    row(&self.payload(page.get(cell..).ok_or(CUT)?, &mut budget)?);
                }
                continue;
            }
            let child = |bytes: &[u8], offset| {
                let number = big(bytes, offset).and_then(|number| usize::try_from(number).ok());
                number.ok_or(CUT)
            };
            // The last child first, since the next one is taken from the end.
            waiting.push((child(header, 8)?, depth + 1));
            for cell in cells.rev() {
                waiting.push((child(page, cell)?, depth + 1));
            }
        }
        Ok(())
    }

    /// The bytes of a row, of which the end may lie on pages of its own.
    fn payload(&self, cell: &[u8], budget: &mut usize) -> Result<Vec<u8>, Damaged> {
        let (length, rest) = varint(cell).ok_or(CUT)?;
        let (_, rest) = varint(rest).ok_or(CUT)?;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= MAX_RECORD);
        let length = length.ok_or(Damaged("has a row of an impossible size"))?;
        let most = self.usable - 35;
        if length <= most {
            return Ok(slice(rest, 0, length).ok_or(CUT)?.to_vec());
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let local = least + (length - least) % (self.usable - 4);
        let local = if local <= most { local } else { least };
        let mut bytes = slice(rest, 0, local).ok_or(CUT)?.to_vec();
        let mut next = big(rest, local).ok_or(CUT)?;
        while bytes.len() < length {
            *budget = budget
                .checked_sub(1)
                .ok_or(Damaged("has pages in a circle"))?;
            let page = self.page(usize::try_from(next).map_err(|_| CUT)?)?;
            let left = (length - bytes.len()).min(self.usable - 4);
            bytes.extend(slice(page, 4, left).ok_or(CUT)?);
            next = big(page, 0).ok_or(CUT)?;
        }
        Ok(bytes)
    }
}

/// A number of up to nine bytes, and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for place in 0..9 {
        let byte = *bytes.get(place)?;
        if place == 8 {
            return Some((number << 8 | u64::from(byte), &bytes[9..]));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

/// The columns of a row; as many as make sense.
fn columns(row: &[u8]) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    let Some((length, mut types)) = varint(row) else {
        return columns;
    };
    let Some(length) = usize::try_from(length)
        .ok()
        .filter(|length| *length <= row.len())
    else {
        return columns;
    };
    let Some(types_length) = length.checked_sub(row.len() - types.len()) else {
        return columns;
    };
    types = &types[..types_length];
    let mut data = &row[length..];
    while let Some((kind, rest)) = varint(types).filter(|_| columns.len() < 8) {
        types = rest;
        let size = match kind {
            0 | 8 | 9 | 10 | 11 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            kind => (kind - 12) / 2,
        };
        let Some(value) = usize::try_from(size).ok().and_then(|size| data.get(..size)) else {
            break;
        };
        data = &data[value.len()..];
        columns.push(match kind {
            8 => Column::Number(0),
            9 => Column::Number(1),
            1..=6 => Column::Number(
                value
                    .iter()
                    .fold(0, |number, byte| number << 8 | i64::from(*byte)),
            ),
            12.. => Column::Bytes(value),
            _ => Column::Other,
        });
    }
    columns
}
