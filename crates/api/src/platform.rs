//! Platforms: the operating system and processor an image is built for. Written as an object
//! `{os, architecture, variant}`; `arch` is read for `architecture`, and the one-line form
//! `os/architecture[/variant]` is read too and is how field selectors and tables spell it.

use muster_kind::schema::{Schema, list, object, string};
use serde_json::Value;
use std::fmt;

/// A platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Platform {
    /// The operating system, as Go names it.
    pub os: String,
    /// The processor, as Go names it.
    pub architecture: String,
    /// The flavour of the processor, such as `v7`.
    pub variant: Option<String>,
}

/// Every operating system and the processors it runs on, as Go's toolchain knows them.
const KNOWN: &[(&str, &[&str])] = &[
    ("aix", &["ppc64"]),
    ("android", &["386", "amd64", "arm", "arm64"]),
    ("darwin", &["amd64", "arm64"]),
    ("dragonfly", &["amd64"]),
    ("freebsd", &["386", "amd64", "arm", "arm64", "riscv64"]),
    ("illumos", &["amd64"]),
    ("ios", &["amd64", "arm64"]),
    ("js", &["wasm"]),
    (
        "linux",
        &[
            "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle",
            "ppc64", "ppc64le", "riscv64", "s390x",
        ],
    ),
    ("netbsd", &["386", "amd64", "arm", "arm64"]),
    (
        "openbsd",
        &["386", "amd64", "arm", "arm64", "ppc64", "riscv64"],
    ),
    ("plan9", &["386", "amd64", "arm"]),
    ("solaris", &["amd64"]),
    ("wasip1", &["wasm"]),
    ("windows", &["386", "amd64", "arm64"]),
];

/// The variants that image indexes use, per processor.
const VARIANTS: &[(&str, &[&str])] = &[
    ("amd64", &["v1", "v2", "v3", "v4"]),
    ("arm", &["v5", "v6", "v7", "v8"]),
    ("arm64", &["v8", "v9"]),
];

fn known<'a>(table: &'a [(&str, &[&str])], key: &str) -> Option<&'a [&'a str]> {
    table
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, values)| *values)
}

impl Platform {
    /// Reads either form; `None` where the operating system or processor is missing.
    pub fn read(value: &Value) -> Option<Self> {
        if let Some(line) = value.as_str() {
            return Platform::parse(line);
        }
        let part = |name| {
            value
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        Some(Platform {
            os: part("os")?.into(),
            architecture: part("architecture").or_else(|| part("arch"))?.into(),
            variant: part("variant").map(Into::into),
        })
    }

    /// Reads `os/architecture[/variant]`.
    pub fn parse(line: &str) -> Option<Self> {
        let parts: Vec<&str> = line.split('/').collect();
        let (os, architecture, variant) = match parts[..] {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant)),
            _ => return None,
        };
        if os.is_empty() || architecture.is_empty() || variant == Some("") {
            return None;
        }
        Some(Platform {
            os: os.into(),
            architecture: architecture.into(),
            variant: variant.map(Into::into),
        })
    }

    /// What is wrong with the platform: the field, and the values it may take.
    pub fn unknown_part(&self) -> Option<(&'static str, Vec<&'static str>)> {
        let Some(architectures) = known(KNOWN, &self.os) else {
            return Some(("os", KNOWN.iter().map(|(os, _)| *os).collect()));
        };
        if !architectures.contains(&self.architecture.as_str()) {
            return Some(("architecture", architectures.to_vec()));
        }
        let variants = known(VARIANTS, &self.architecture).unwrap_or_default();
        match &self.variant {
            Some(variant) if !variants.contains(&variant.as_str()) => {
                Some(("variant", variants.to_vec()))
            }
            _ => None,
        }
    }

    /// Whether an image of this platform is wanted where `wanted` is asked for: a wish without a
    /// variant takes every variant.
    pub fn satisfies(&self, wanted: &Platform) -> bool {
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && (wanted.variant.is_none() || wanted.variant == self.variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

/// The platforms to scan.
pub fn platforms() -> Schema {
    list(
        object()
            .describe("One platform to scan.")
            .required(
                "os",
                string()
                    .length(1, 64)
                    .describe("Operating system, such as linux."),
            )
            .field(
                "architecture",
                string().describe("Processor, such as amd64 or arm64."),
            )
            .field(
                "arch",
                string().describe("The same as `architecture`, which goes first."),
            )
            .field(
                "variant",
                string().describe("Flavour of the processor, such as v7."),
            ),
    )
    .at_most(64)
    .describe("Platforms to scan of every image; all that the image is built for when empty.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_of_a_platform_are_read_and_spelled_alike() {
        for (value, spelled) in [
            (json!("linux/amd64"), Some("linux/amd64")),
            (json!("linux/arm/v7"), Some("linux/arm/v7")),
            (
                json!({"os": "linux", "architecture": "arm64"}),
                Some("linux/arm64"),
            ),
            (
                json!({"os": "linux", "arch": "arm", "variant": "v6"}),
                Some("linux/arm/v6"),
            ),
            (
                json!({"os": "linux", "architecture": "arm64", "arch": "amd64"}),
                Some("linux/arm64"),
            ),
            (json!({"os": "linux"}), None),
            (json!("linux"), None),
            (json!("linux//v7"), None),
            (json!("linux/arm/v7/x"), None),
            (json!(7), None),
        ] {
            assert_eq!(
                Platform::read(&value).map(|p| p.to_string()).as_deref(),
                spelled,
                "{value}"
            );
        }
    }

    #[test]
    fn the_part_that_nobody_builds_for_is_named() {
        for (line, part) in [
            ("linux/amd64", None),
            ("linux/arm64/v8", None),
            ("linux/arm/v7", None),
            ("windows/amd64", None),
            ("lunix/amd64", Some("os")),
            ("windows/s390x", Some("architecture")),
            ("linux/x86_64", Some("architecture")),
            ("linux/arm64/v7", Some("variant")),
            ("linux/s390x/v1", Some("variant")),
        ] {
            let platform = Platform::parse(line).unwrap();
            assert_eq!(
                platform.unknown_part().map(|(part, _)| part),
                part,
                "{line}"
            );
        }
    }

    #[test]
    fn a_wish_without_a_variant_takes_every_variant() {
        let platform = |line| Platform::parse(line).unwrap();
        assert!(platform("linux/arm/v7").satisfies(&platform("linux/arm")));
        assert!(platform("linux/arm/v7").satisfies(&platform("linux/arm/v7")));
        assert!(!platform("linux/arm").satisfies(&platform("linux/arm/v7")));
        assert!(!platform("linux/arm64").satisfies(&platform("linux/arm")));
    }
}
