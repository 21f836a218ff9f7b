//! A read-only reader of bbolt files, the format in which vulnerability databases are published.
//! It maps the file and answers from the mapped bytes, without a lock, so any number of processes
//! may read one file. It knows pages, buckets, keys and values, and refuses to know what they mean
//! or to write anything. Start reading at [`Bolt`].
//!
//! The file is untrusted: every offset, count and length is checked against the bytes that are
//! there, a tree that is too deep or that loops is an error, and nothing panics.

#![deny(unsafe_code)]

mod bucket;
mod cursor;
mod error;
mod file;
mod mapped;
mod meta;
mod page;

pub use bucket::{Bucket, Entry};
pub use cursor::Cursor;
pub use error::Error;
pub use file::Bolt;
pub use mapped::Mapped;
