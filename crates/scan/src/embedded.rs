//! Bills of materials that were put into an image: whoever built a program without a package
//! manager may have left word of what is in it. A bill is hearsay: where the package database or a
//! file of the package itself speaks, that counts.

use crate::package::{Detector, Package};
use crate::purl::Purl;
use crate::sbom::{cyclonedx, spdx};
use serde::{Deserialize, Serialize};

/// The endings of such documents.
const ENDINGS: [&str; 4] = [".spdx", ".spdx.json", ".cdx", ".cdx.json"];

/// A package that a bill names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// What would have found it.
    pub detector: Detector,
    /// The package.
    pub package: Package,
}

/// Whether a file is a bill, by its path. Bills within Python distributions are about the
/// libraries that were compiled into them and are named by no package manager.
pub(crate) fn is_one(path: &str) -> bool {
    ENDINGS.iter().any(|ending| path.ends_with(ending)) && !path.contains(".dist-info/sboms/")
}

/// Reads a bill: SPDX in JSON or in its plain form, or CycloneDX in JSON.
pub fn read(contents: &[u8]) -> Result<Vec<Stated>, String> {
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    let first = contents.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return plain(contents);
    }
    let bill = match cyclonedx::read(contents) {
        Ok(bill) => bill,
        Err(_) => spdx::read(contents).map_err(|error| error.to_string())?,
    };
    let stated = bill.components.into_iter().map(|component| Stated {
        detector: component.detector,
        package: component.package,
    });
    Ok(stated.collect())
}

/// `Tag: value` lines, of which those with package URLs matter.
fn plain(contents: &[u8]) -> Result<Vec<Stated>, String> {
    let text = String::from_utf8_lossy(contents);
    if !text
        .lines()
        .any(|line| line.starts_with("SPDXVersion: SPDX-2."))
    {
        return Err("no bill of materials that is known".into());
    }
    let urls = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("ExternalRef:")?.split_ascii_whitespace();
        let category = words.next()?.replace('_', "-");
        let is_purl = category == "PACKAGE-MANAGER" && words.next() == Some("purl");
        words.next().filter(|_| is_purl)
    });
    let stated = urls.filter_map(|url| {
        let (ecosystem, package) = Purl::parse(url)?.package()?;
        Some(Stated {
            detector: ecosystem.detector(),
            package,
        })
    });
    Ok(stated.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bills_are_known_by_their_names() {
        for (path, expected) in [
            ("opt/bitnami/redis/.spdx-redis.spdx", true),
            ("var/lib/db/sbom/glibc-2.40-r1.spdx.json", true),
            ("app/bom.cdx.json", true),
            ("app/bom.cdx", true),
            ("app/bom.json", false),
            ("x/a-1.dist-info/sboms/a.cdx.json", false),
        ] {
            assert_eq!(is_one(path), expected, "{path}");
        }
    }

    #[test]
    fn bills_of_every_form_are_read() {
        let url = "pkg:golang/example.com/a@v1.0.0";
        let spdx = format!(
            r#"{{"spdxVersion": "SPDX-2.3", "packages": [{{"SPDXID": "a", "name": "a", "externalRefs":
            [{{"referenceCategory": "PACKAGE_MANAGER", "referenceType": "purl", "referenceLocator": "{url}"}}]}}]}}"#
        );
        let cyclonedx = format!(
            r#"{{"bomFormat": "CycloneDX", "specVersion": "1.4", "metadata": {{}},
            "components": [{{"type": "library", "name": "a", "purl": "{url}"}},
            {{"type": "library", "name": "b", "purl": "pkg:bitnami/b@1"}}]}}"#
        );
        let plain = format!(
            "SPDXVersion: SPDX-2.2\nPackageName: a\nExternalRef: PACKAGE-MANAGER purl {url}\n\
             ExternalRef: SECURITY cpe23Type cpe:2.3:a\nExternalRef:\n"
        );
        for text in [spdx, cyclonedx, plain] {
            let stated = read(text.as_bytes()).unwrap();
            assert_eq!(stated.len(), 1, "{text}");
            assert_eq!(stated[0].detector, Detector::GoBinary);
            assert_eq!(stated[0].package, Package::new("example.com/a", "v1.0.0"));
        }
        for text in ["", "{}", "nonsense", r#"{"spdxVersion": "SPDX-3.0"}"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
