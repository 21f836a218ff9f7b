//! Inventories that were kept, read back. Whoever kept one may have been wrong or worse, so it is
//! held to what reading a layer could have yielded: the version, the limits, and paths below the
//! root in their one form. That it tells the truth nobody can see.

use super::inventory::{ANALYZER_VERSION, LayerInventory};
use super::path;
use super::wanted::leads_to_a_database;
use crate::limits::{Exceeded, Limits};

/// Why something that was kept is not an inventory.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// It is not even the text of one.
    #[error("reading a kept inventory: {0}")]
    Syntax(#[from] serde_json::Error),
    /// Other analyzers made it.
    #[error("a kept inventory is of version {0} and not {ANALYZER_VERSION}")]
    Version(u32),
    /// It is larger, in some way, than is borne.
    #[error("reading a kept inventory: {0}")]
    Limit(#[from] Exceeded),
    /// It has a path that no layer yields.
    #[error("a kept inventory has the path {0:?}")]
    Path(String),
}

impl LayerInventory {
    /// The inventory as it is kept. The same inventory always yields the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads back what [`LayerInventory::to_bytes`] wrote, or what somebody says it wrote.
    pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<LayerInventory, RecallError> {
        let inventory: LayerInventory = serde_json::from_slice(bytes)?;
        if inventory.version != ANALYZER_VERSION {
            return Err(RecallError::Version(inventory.version));
        }
        let links = inventory.links.iter();
        let paths = (inventory.files.keys())
            .chain(&inventory.whiteouts)
            .chain(links.clone().map(|(path, _)| path));
        for path in paths {
            check(path, false, limits)?;
        }
        // So there are only a few of them.
        let mut others = links.clone().map(|(path, _)| path);
        if let Some(path) = others.find(|path| !leads_to_a_database(path)) {
            return Err(RecallError::Path(path.clone()));
        }
        // The root itself can be hidden, and linked to.
        for path in links.map(|(_, target)| target).chain(&inventory.opaque) {
            check(path, true, limits)?;
        }
        weigh(&inventory, limits)?;
        Ok(inventory)
    }
}

fn check(path: &str, root: bool, limits: &Limits) -> Result<(), RecallError> {
    if path.len() > limits.path_bytes {
        return Err(Exceeded::new("bytes in a path", limits.path_bytes as u64).into());
    }
    match path::normal(path) {
        Some(normal) if normal == path && (root || !path.is_empty()) => Ok(()),
        _ => Err(RecallError::Path(path.into())),
    }
}

/// Adds up what the walk over a layer adds up.
fn weigh(inventory: &LayerInventory, limits: &Limits) -> Result<(), Exceeded> {
    let bound = |what, count: usize, limit: usize| match count > limit {
        true => Err(Exceeded::new(what, limit as u64)),
        false => Ok(()),
    };
    let text = |path: &String| path.len();
    let mut bytes = inventory.whiteouts.iter().map(text).sum::<usize>()
        + inventory.opaque.iter().map(text).sum::<usize>();
    for (path, target) in &inventory.links {
        bytes += path.len() + target.len();
    }
    let mut packages = 0;
    for (path, found) in &inventory.files {
        bytes += path.len() + found.weight();
        packages += found.count();
    }
    let names = "bytes of names to remember from a layer";
    bound(names, bytes, limits.remembered_bytes)?;
    bound("packages in a layer", packages, limits.packages)?;
    let entries = usize::try_from(limits.entries).unwrap_or(usize::MAX);
    bound("entries in a layer", inventory.paths.len(), entries)?;
    // The last one counts the rest.
    let incomplete = inventory.incomplete.len();
    bound("files not understood", incomplete, limits.incomplete + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: &Value, limits: &Limits) -> Result<LayerInventory, RecallError> {
        LayerInventory::from_bytes(value.to_string().as_bytes(), limits)
    }

    fn whole() -> Value {
        json!({
            "version": ANALYZER_VERSION,
            "files": {
                "etc/os-release": {"os": {"version": "12"}},
                "var/lib/dpkg/status": {"packages": {
                    "detector": "dpkg",
                    "packages": [{"name": "a", "version": "1"}, {"name": "b", "version": "2"}],
                }},
                "x": "nothing",
            },
            "whiteouts": ["etc/passwd"],
            "opaque": ["", "usr"],
            "links": {"lib": "usr/lib", "var": ""},
            "incomplete": [{"path": "", "reason": "a path leads out of the image"}],
        })
    }

    #[test]
    fn what_was_kept_comes_back() {
        let inventory = read(&whole(), &Limits::DEFAULT).unwrap();
        let bytes = inventory.to_bytes().unwrap();
        let again = LayerInventory::from_bytes(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(again, inventory);
        assert_eq!(again.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn what_no_layer_yields_is_refused() {
        let changes: [(&str, Value); 14] = [
            ("/version", json!(ANALYZER_VERSION + 1)),
            ("/version", json!("1")),
            ("/files", json!({"../etc/shadow": "nothing"})),
            ("/files", json!({"/etc/shadow": "nothing"})),
            ("/files", json!({"": "nothing"})),
            ("/files", json!({"a//b": "nothing"})),
            ("/files", json!({"a": {"unheard": 1}})),
            ("/whiteouts", json!(["."])),
            ("/opaque", json!(["a/"])),
            ("/links", json!({"usr": "../b"})),
            ("/links", json!({"opt": "b"})),
            ("/links", json!({"usr": "x".repeat(5000)})),
            ("/files", json!({"a": {"owned": "no base64"}})),
            ("/incomplete", json!([[[[[]]]]])),
        ];
        for (place, value) in changes {
            let mut changed = whole();
            *changed.pointer_mut(place).unwrap() = value.clone();
            assert!(read(&changed, &Limits::DEFAULT).is_err(), "{place} {value}");
        }
        for text in ["", "{", "null", "[]", "{}", &"[".repeat(100_000)] {
            let read = LayerInventory::from_bytes(text.as_bytes(), &Limits::DEFAULT);
            assert!(read.is_err(), "{}", &text[..text.len().min(9)]);
        }
    }

    #[test]
    fn the_limits_of_a_layer_are_those_of_its_inventory() {
        let limits = Limits::DEFAULT;
        for (limits, what) in [
            (
                Limits {
                    packages: 1,
                    ..limits
                },
                "packages",
            ),
            (
                Limits {
                    remembered_bytes: 50,
                    ..limits
                },
                "bytes of names",
            ),
            (
                Limits {
                    path_bytes: 5,
                    ..limits
                },
                "bytes in a path",
            ),
            (
                Limits {
                    incomplete: 0,
                    ..limits
                },
                "",
            ),
        ] {
            match read(&whole(), &limits) {
                Ok(_) => assert_eq!(what, ""),
                Err(error) => assert!(error.to_string().contains(what), "{error}"),
            }
        }
    }
}
