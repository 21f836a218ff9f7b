//! What the Lease of a Registry is called: `lease-{namespace}-{name}`. Two Registries never share a
//! name: read from the left, everything up to the first hyphen is the namespace, so a namespace
//! that has a hyphen itself gets a hash behind the name, and nothing else looks as if it had one.

use super::Place;
use sha2::{Digest, Sha256};

/// What the name of an object may have.
const LONGEST: usize = 253;
/// How many hexadecimal digits tell two Registries apart.
const DIGITS: usize = 10;

/// The name of the Lease of a Registry.
pub(super) fn of(place: Place<'_>) -> String {
    let Place {
        namespace,
        registry,
    } = place;
    let mut name = format!("lease-{namespace}-{registry}");
    if !namespace.contains('-') && !looks_hashed(registry) && name.len() <= LONGEST {
        return name;
    }
    let hash = Sha256::digest(format!("{namespace}/{registry}"));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    name.truncate(name.floor_char_boundary(LONGEST - DIGITS - 1));
    let name = name.trim_end_matches(['-', '.']);
    format!("{name}-{}", &hash[..DIGITS])
}

fn looks_hashed(registry: &str) -> bool {
    let last = registry.rsplit('-').next().unwrap_or_default();
    last.len() == DIGITS && last.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_that_no_registry_can_have_stops_nobody() {
        for registry in [
            "é".repeat(130),
            format!("a{}", "é".repeat(130)),
            "漢".repeat(99),
        ] {
            assert!(name("default", &registry).len() <= LONGEST);
        }
    }

    fn name(namespace: &str, registry: &str) -> String {
        of(Place {
            namespace,
            registry,
        })
    }

    #[test]
    fn a_lease_is_called_after_its_registry() {
        for (namespace, registry, called) in [
            (
                "default",
                "registry-example",
                "lease-default-registry-example",
            ),
            (
                "default",
                "hub.example.org",
                "lease-default-hub.example.org",
            ),
            ("a", "b-c", "lease-a-b-c"),
        ] {
            assert_eq!(name(namespace, registry), called);
        }
    }

    #[test]
    fn no_two_registries_share_a_lease() {
        let long = "x".repeat(253);
        let other = format!("{}y", "x".repeat(252));
        // Somebody who would like to keep another namespace from being scanned.
        let crafted = name("a-b", "c").replacen("lease-a-", "", 1);
        let pairs = [
            ("a", "b-c"),
            ("a-b", "c"),
            ("a-b", "c-d"),
            ("a-b-c", "d"),
            ("a", "b-c-d"),
            ("a", crafted.as_str()),
            ("a", "0123456789"),
            ("default", &long),
            ("default", &other),
        ];
        let names: BTreeSet<String> = pairs.iter().map(|(a, b)| name(a, b)).collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= LONGEST, "{name}");
            assert!(
                name.ends_with(|c: char| c.is_ascii_alphanumeric()),
                "{name}"
            );
        }
    }
}
