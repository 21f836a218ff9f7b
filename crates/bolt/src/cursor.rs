//! Walking a bucket in the order of its keys. A walk ends: it visits no more pages than the file
//! has, goes no deeper than a limit, and refuses keys that do not ascend.

use crate::bucket::MAX_DEPTH;
use crate::page::Page;
use crate::{Bucket, Entry, Error};

/// An iterator over the entries of a bucket. After an error it ends.
#[derive(Debug)]
pub struct Cursor<'a> {
    bucket: Bucket<'a>,
    /// The pages from the root to the leaf, each with the element that comes next.
    path: Vec<(Page<'a>, usize)>,
    /// Pages that may still be visited.
    budget: usize,
    /// The key to start from, until the walk has started.
    start: Option<Vec<u8>>,
    last: Option<&'a [u8]>,
    failed: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn start(bucket: Bucket<'a>, key: &[u8]) -> Self {
        Cursor {
            bucket,
            path: Vec::new(),
            // The root of an inline bucket is no page of the file.
            budget: bucket.file.pages().saturating_add(1),
            start: Some(key.to_vec()),
            last: None,
            failed: false,
        }
    }

    fn advance(&mut self) -> Result<Option<(&'a [u8], Entry<'a>)>, Error> {
        if let Some(key) = self.start.take() {
            self.descend(self.bucket.page()?, &key)?;
        }
        while let Some((page, next)) = self.path.last_mut() {
            if *next >= page.count {
                self.path.pop();
                continue;
            }
            let index = *next;
            *next = index.saturating_add(1);
            if page.is_branch {
                let child = page.branch(index)?.1;
                let child = self.bucket.file.page(child)?;
                self.descend(child, &[])?;
                continue;
            }
            let leaf = page.leaf(index)?;
            if self.last.is_some_and(|last| last >= leaf.key) {
                return Err(Error::Bucket("its keys do not ascend"));
            }
            self.last = Some(leaf.key);
            let entry = if leaf.is_bucket {
                Entry::Bucket(self.bucket.nested(leaf.value)?)
            } else {
                Entry::Value(leaf.value)
            };
            return Ok(Some((leaf.key, entry)));
        }
        Ok(None)
    }

    /// Goes from a page down to the leaf where `key` is or would be.
    fn descend(&mut self, mut page: Page<'a>, key: &[u8]) -> Result<(), Error> {
        loop {
            if self.path.len() >= MAX_DEPTH {
                return Err(Error::Bucket("its tree is too deep"));
            }
            self.budget = self
                .budget
                .checked_sub(1)
                .ok_or(Error::Bucket("its tree leads in a circle"))?;
            let below = page.below(key)?;
            if !page.is_branch {
                self.path.push((page, below));
                return Ok(());
            }
            let exact = below < page.count && page.key(below)? == key;
            let child = if exact {
                below
            } else {
                below.saturating_sub(1)
            };
            let number = page.branch(child)?.1;
            self.path.push((page, child.saturating_add(1)));
            page = self.bucket.file.page(number)?;
        }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Result<(&'a [u8], Entry<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.advance().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}
