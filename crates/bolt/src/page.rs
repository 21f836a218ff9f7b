//! Pages: a header, then a table of elements, then the keys and values they point at. A page is a
//! slice that ends where its overflow pages end, and no element reaches out of it.

use crate::Error;

/// Length of a page header: number, flags, count of elements, count of overflow pages.
pub(crate) const HEADER: usize = 16;
/// Length of an element of either sort.
const ELEMENT: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
/// An element of a leaf that holds a bucket and no plain value.
const BUCKET: u32 = 0x01;

/// One page with its overflow, of which there is at least a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    bytes: &'a [u8],
    number: u64,
    pub is_branch: bool,
    pub count: usize,
}

/// What a leaf says of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub is_bucket: bool,
}

impl<'a> Page<'a> {
    /// The page of that number in a file.
    pub fn of_file(file: &'a [u8], page_size: usize, number: u64) -> Result<Self, Error> {
        let outside = || problem(number, "it lies outside the file");
        let start = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_mul(page_size))
            .ok_or_else(outside)?;
        let rest = file.get(start..).ok_or_else(outside)?;
        let overflow = u32_at(rest, 12).ok_or_else(outside)?;
        if u64_at(rest, 0) != Some(number) {
            return Err(problem(number, "it calls itself by another number"));
        }
        let length = usize::try_from(overflow)
            .ok()
            .and_then(|overflow| overflow.checked_add(1))
            .and_then(|pages| pages.checked_mul(page_size))
            .ok_or_else(outside)?;
        let bytes = rest
            .get(..length)
            .ok_or_else(|| problem(number, "its overflow lies outside the file"))?;
        Page::parse(bytes, number)
    }

    /// The page that a small bucket carries inside its value.
    pub fn inline(bytes: &'a [u8]) -> Result<Self, Error> {
        let page = Page::parse(bytes, 0)?;
        if page.is_branch {
            return Err(problem(0, "an inline bucket must be a leaf"));
        }
        Ok(page)
    }

    fn parse(bytes: &'a [u8], number: u64) -> Result<Self, Error> {
        let short = || problem(number, "it is shorter than its header says");
        let flags = u16_at(bytes, 8).ok_or_else(short)?;
        let count = usize::from(u16_at(bytes, 10).ok_or_else(short)?);
        let is_branch = match flags {
            BRANCH => true,
            LEAF => false,
            _ => return Err(problem(number, "it is neither a branch nor a leaf")),
        };
        if is_branch && count == 0 {
            return Err(problem(number, "it is a branch without children"));
        }
        let table = count.checked_mul(ELEMENT).ok_or_else(short)?;
        if bytes.len().saturating_sub(HEADER) < table {
            return Err(short());
        }
        Ok(Page {
            bytes,
            number,
            is_branch,
            count,
        })
    }

    fn element(&self, index: usize) -> Result<&'a [u8], Error> {
        index
            .checked_mul(ELEMENT)
            .and_then(|offset| offset.checked_add(HEADER))
            .and_then(|start| self.bytes.get(start..))
            .filter(|rest| index < self.count && rest.len() >= ELEMENT)
            .ok_or_else(|| problem(self.number, "an element lies outside the page"))
    }

    /// The bytes that start `position` after the element and are `length` long.
    fn slice(&self, element: &'a [u8], position: usize, length: u32) -> Result<&'a [u8], Error> {
        usize::try_from(length)
            .ok()
            .and_then(|length| element.get(position..position.checked_add(length)?))
            .ok_or_else(|| problem(self.number, "a key or value lies outside the page"))
    }

    fn field(&self, element: &[u8], offset: usize) -> Result<u32, Error> {
        u32_at(element, offset)
            .ok_or_else(|| problem(self.number, "an element lies outside the page"))
    }

    /// The first key below a child of a branch, and the child's page.
    pub fn branch(&self, index: usize) -> Result<(&'a [u8], u64), Error> {
        let element = self.element(index)?;
        let position = self.position(element, 0)?;
        let key = self.slice(element, position, self.field(element, 4)?)?;
        let child = u64_at(element, 8)
            .ok_or_else(|| problem(self.number, "an element lies outside the page"))?;
        Ok((key, child))
    }

    /// An element of a leaf.
    pub fn leaf(&self, index: usize) -> Result<Leaf<'a>, Error> {
        let element = self.element(index)?;
        let position = self.position(element, 4)?;
        let key_size = self.field(element, 8)?;
        let key = self.slice(element, position, key_size)?;
        let after = position
            .checked_add(key.len())
            .ok_or_else(|| problem(self.number, "a key or value lies outside the page"))?;
        Ok(Leaf {
            key,
            value: self.slice(element, after, self.field(element, 12)?)?,
            is_bucket: self.field(element, 0)? & BUCKET != 0,
        })
    }

    fn position(&self, element: &[u8], offset: usize) -> Result<usize, Error> {
        usize::try_from(self.field(element, offset)?)
            .map_err(|_| problem(self.number, "a key or value lies outside the page"))
    }

    /// The key of an element, whichever sort of page this is.
    pub fn key(&self, index: usize) -> Result<&'a [u8], Error> {
        if self.is_branch {
            Ok(self.branch(index)?.0)
        } else {
            Ok(self.leaf(index)?.key)
        }
    }

    /// How many elements have a key below `key`. Damaged order gives some number, never a panic.
    pub fn below(&self, key: &[u8]) -> Result<usize, Error> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle)? < key {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

pub(crate) fn problem(page: u64, problem: &'static str) -> Error {
    Error::Page { page, problem }
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array(bytes, offset).map(u64::from_le_bytes)
}
