//! The package databases of rpm: three formats of file that hold the same records. Each format is
//! read from bytes in memory, never trusted and never opened by a library that could write to it.

mod berkeley;
mod header;
mod manifest;
mod ndb;
mod sqlite;

pub use manifest::manifest;

use crate::package::Reading;

/// Why a database could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the package database {0}")]
pub(crate) struct Damaged(&'static str);

/// Reads a database, whichever of the formats it has.
pub fn database(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let mut take = |record: &[u8]| header::read(record, &mut reading);
    let walked = if contents.is_empty() {
        Ok(())
    } else if contents.starts_with(sqlite::MAGIC) {
        sqlite::walk(contents, &mut take)
    } else if contents.starts_with(ndb::MAGIC) {
        ndb::walk(contents, &mut take)
    } else if berkeley::is_one(contents) {
        berkeley::walk(contents, &mut take)
    } else {
        Err(Damaged("has a format that is not known"))
    };
    if let Err(damaged) = walked {
        reading.problems.push(damaged.to_string());
    }
    reading.owned.seal();
    reading
}

/// A little-endian number.
fn little(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// A big-endian number.
fn big(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// `length` bytes from `offset`.
fn slice(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_said_to_be_none() {
        assert_eq!(database(b"").problems, Vec::<String>::new());
        assert_eq!(
            database(b"nonsense").problems,
            ["the package database has a format that is not known"]
        );
    }

    #[test]
    fn damaged_databases_never_panic() {
        let record = header::tests::record(&[(1000, header::tests::Value::Text("a"))]);
        let whole = [
            ndb::tests::database(&[&record]),
            berkeley::tests::database(&[&record]),
        ];
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for bytes in whole {
            for _ in 0..3000 {
                let mut damaged = bytes.clone();
                for _ in 0..4 {
                    let place = random() % damaged.len();
                    damaged[place] = random() as u8;
                }
                damaged.truncate(damaged.len() - random() % 3 * (random() % damaged.len()) / 2);
                drop(database(&damaged));
            }
        }
    }
}
