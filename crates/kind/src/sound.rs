//! Whether JSON that is kept as bytes can be read by those who get it back. Skipping over a value,
//! as opaque fields are, judges neither depth nor numbers nor escapes; one such field would make
//! every list that shows it unreadable.

use crate::parse::DEPTH_LIMIT;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Judges one JSON value without building it.
pub(crate) fn check(text: &str) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Sound { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()
}

/// Any value that can be read.
#[derive(Clone, Copy)]
struct Sound {
    depth: usize,
}

impl Sound {
    fn below(self) -> Self {
        let depth = self.depth + 1;
        Sound { depth }
    }
}

impl<'de> DeserializeSeed<'de> for Sound {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > DEPTH_LIMIT {
            return Err(D::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.below())?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_key_seed(self)?.is_some() {
            entries.next_value_seed(self.below())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_stumble_over_is_not_sound() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bad in ["1e999", r#"["\ud800"]"#, r#"{"\ud800":1}"#, &deep] {
            assert!(check(bad).is_err(), "{bad}");
        }
        for good in ["1e99", r#"{"a":[1,-2,3.5,null,true,"\u00e9"]}"#, "\"a\""] {
            assert!(check(good).is_ok(), "{good}");
        }
    }
}
