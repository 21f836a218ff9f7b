//! The protobuf wire format: numbered fields, read one after the other from bytes that nobody
//! vouches for.

/// The value of one field as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A length and as many bytes: text, bytes, messages, packed numbers.
    Bytes(&'a [u8]),
    /// Four bytes; no Kubernetes type uses them, but they may have to be skipped.
    Fixed32,
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err("proto: wrong wireType for a field of bytes".into()),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "proto: invalid UTF-8 in a string".into())
    }

    pub(super) fn varint(self) -> Result<u64, String> {
        match self {
            Wire::Varint(number) => Ok(number),
            _ => Err("proto: wrong wireType for a number".into()),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, String> {
        match self {
            Wire::Fixed64(bits) => Ok(bits),
            _ => Err("proto: wrong wireType for a floating point number".into()),
        }
    }
}

/// Reads fields off the front of some bytes.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next field's number and value; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| format!("proto: illegal tag {tag}"))?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                self.array::<4>()?;
                Wire::Fixed32
            }
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, wire)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".into())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("unexpected EOF")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("unexpected EOF")?;
        self.0 = rest;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_whatever_their_form() {
        let mut reader = Reader::new(&[0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 2, 3, 4]);
        assert_eq!(reader.next(), Ok(Some((1, Wire::Varint(150)))));
        assert_eq!(reader.next(), Ok(Some((2, Wire::Bytes(b"hi")))));
        assert_eq!(reader.next(), Ok(Some((3, Wire::Fixed32))));
        assert_eq!(reader.next(), Ok(None));
    }

    #[test]
    fn broken_bytes_are_errors() {
        for (bytes, problem) in [
            (&[0x08][..], "unexpected EOF"),
            (&[0x12, 5, 1][..], "unexpected EOF"),
            (
                &[
                    0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
                ][..],
                "unexpected EOF",
            ),
            (
                &[
                    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                ][..],
                "proto: integer overflow",
            ),
            (&[0x00][..], "proto: illegal tag 0"),
            (&[0x0b][..], "proto: illegal wireType 3"),
            (&[0x09, 1, 2][..], "unexpected EOF"),
        ] {
            assert_eq!(
                Reader::new(bytes).next(),
                Err(problem.to_owned()),
                "{bytes:?}"
            );
        }
    }
}
