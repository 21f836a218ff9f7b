//! Buckets: named trees of keys, nested in one another.

use crate::page::{Page, u64_at};
use crate::{Bolt, Cursor, Error};

/// Length of a bucket's record: the root page and a sequence number.
const RECORD: usize = 16;
/// How deep buckets may be nested; real files have three levels.
const MAX_NESTING: usize = 32;
/// How deep the tree of one bucket may be. Each level holds at least two children, so a file of
/// 2^48 bytes needs no more.
pub(crate) const MAX_DEPTH: usize = 48;

/// One bucket of a database.
#[derive(Clone, Copy, Debug)]
pub struct Bucket<'a> {
    pub(crate) file: &'a Bolt,
    pub(crate) tree: Tree<'a>,
    nesting: usize,
}

/// Where a bucket's tree starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tree<'a> {
    Page(u64),
    Inline(&'a [u8]),
}

/// What a key leads to.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// Plain bytes.
    Value(&'a [u8]),
    /// A bucket inside this one.
    Bucket(Bucket<'a>),
}

impl<'a> Bucket<'a> {
    pub(crate) fn root(file: &'a Bolt, page: u64) -> Self {
        Bucket {
            file,
            tree: Tree::Page(page),
            nesting: 0,
        }
    }

    /// The bucket that `value` describes, inside this one.
    pub(crate) fn nested(&self, value: &'a [u8]) -> Result<Self, Error> {
        let nesting = self.nesting.saturating_add(1);
        if nesting > MAX_NESTING {
            return Err(Error::Bucket("buckets are nested too deeply"));
        }
        let short = Error::Bucket("its record is too short");
        let tree = match u64_at(value, 0) {
            None => return Err(short),
            Some(0) => Tree::Inline(value.get(RECORD..).ok_or(short)?),
            Some(page) => Tree::Page(page),
        };
        Ok(Bucket {
            file: self.file,
            tree,
            nesting,
        })
    }

    pub(crate) fn page(&self) -> Result<Page<'a>, Error> {
        match self.tree {
            Tree::Page(number) => self.file.page(number),
            Tree::Inline(bytes) => Page::inline(bytes),
        }
    }

    /// What a key leads to.
    pub fn entry(&self, key: &[u8]) -> Result<Option<Entry<'a>>, Error> {
        let mut page = self.page()?;
        for _ in 0..MAX_DEPTH {
            let below = page.below(key)?;
            if !page.is_branch {
                if below >= page.count {
                    return Ok(None);
                }
                let leaf = page.leaf(below)?;
                return match leaf.key == key {
                    false => Ok(None),
                    true if leaf.is_bucket => Ok(Some(Entry::Bucket(self.nested(leaf.value)?))),
                    true => Ok(Some(Entry::Value(leaf.value))),
                };
            }
            let exact = below < page.count && page.key(below)? == key;
            let child = if exact {
                below
            } else {
                below.saturating_sub(1)
            };
            page = self.file.page(page.branch(child)?.1)?;
        }
        Err(Error::Bucket("its tree is too deep"))
    }

    /// The value of a key; nothing where the key is missing or leads to a bucket.
    pub fn get(&self, key: &[u8]) -> Result<Option<&'a [u8]>, Error> {
        Ok(match self.entry(key)? {
            Some(Entry::Value(value)) => Some(value),
            _ => None,
        })
    }

    /// The bucket of that name; nothing where it is missing or is a plain value.
    pub fn bucket(&self, name: &[u8]) -> Result<Option<Bucket<'a>>, Error> {
        Ok(match self.entry(name)? {
            Some(Entry::Bucket(bucket)) => Some(bucket),
            _ => None,
        })
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> Cursor<'a> {
        Cursor::start(*self, &[])
    }

    /// The entries from the first key that is not below `key`.
    pub fn seek(&self, key: &[u8]) -> Cursor<'a> {
        Cursor::start(*self, key)
    }
}
