//! Texts that PostgreSQL cannot keep or index: it knows no NUL, and an index entry has a size.
//! Nothing is refused for that. What is looked up by equality alone is replaced by its digest, on
//! both sides alike; a key is no object's key then.

use muster_apiserver::store::Key;
use muster_kind::Digest;

/// Longer values are indexed by their digest: five columns of such must fit into a third of a page.
const LONGEST: usize = 500;
const NUL: char = '\0';

/// A value as the side tables have it. Lists judge the value itself afterwards.
pub(super) fn indexed(value: &str) -> String {
    match value.len() > LONGEST || value.contains(NUL) {
        true => format!("sha256:{}", Digest::of(value.as_bytes())),
        false => value.to_owned(),
    }
}

/// Whether an object can have this key.
pub(super) fn possible(namespace: &str, name: &str) -> bool {
    !namespace.contains(NUL) && !name.contains(NUL)
}

/// The same place in the order of all possible keys.
pub(super) fn place(key: &Key) -> Key {
    let before = |text: &str| text.split(NUL).next().unwrap_or_default().to_owned();
    Key {
        namespace: before(&key.namespace),
        // Behind every name of the namespace that is left.
        name: match key.namespace.contains(NUL) {
            true => char::MAX.into(),
            false => before(&key.name),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_indexed_is_replaced_by_its_digest() {
        assert_eq!(indexed("v"), "v");
        assert_eq!(indexed(&"v".repeat(500)).len(), 500);
        for odd in ["v".repeat(501), "a\0b".into()] {
            assert!(indexed(&odd).len() < 100);
            assert_eq!(indexed(&odd), indexed(&odd));
        }
        assert_ne!(indexed("a\0b"), indexed("a\0c"));
    }

    #[test]
    fn a_place_without_nul_has_the_same_keys_behind_it() {
        let key = |namespace: &str, name: &str| Key {
            namespace: namespace.into(),
            name: name.into(),
        };
        let keys = [key("a", "x"), key("a", "xy"), key("ab", ""), key("b", "x")];
        for odd in [
            key("a", "x\0"),
            key("a\0b", "x"),
            key("\0", "y"),
            key("a", "x"),
        ] {
            for known in &keys {
                assert_eq!(*known > odd, *known > place(&odd), "{known:?} {odd:?}");
            }
        }
    }
}
