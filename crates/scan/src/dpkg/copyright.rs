//! The licences of a Debian package, from its copyright file: the fields of the machine-readable
//! form, or the texts that another form refers to. Debian has names of its own for some licences.

use std::collections::BTreeSet;

/// Licences of one package, and bytes of a licence's name.
const MAX_LICENCES: usize = 50;
const MAX_NAME: usize = 100;
const COMMON: &str = "/usr/share/common-licenses/";

/// The package whose copyright file this is: `usr/share/doc/NAME/copyright`.
pub(crate) fn package_of(path: &str) -> Option<&str> {
    let name = path
        .strip_prefix("usr/share/doc/")?
        .strip_suffix("/copyright")?;
    (!name.contains('/')).then_some(name)
}

/// Where the copyright file of a package is.
pub(crate) fn path_of(package: &str) -> String {
    format!("usr/share/doc/{package}/copyright")
}

/// All licences together, for each holds for some part of the package; nothing where none is named.
pub(crate) fn licence(contents: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(contents);
    let mut licences = BTreeSet::new();
    for line in text.lines() {
        if licences.len() >= MAX_LICENCES {
            break;
        }
        if let Some(field) = line.strip_prefix("License:") {
            // `or` gives a choice, so such a text stays whole.
            let field = field.trim();
            let parts = match field.contains(" or ") {
                true => vec![field],
                false => field.split(" and ").collect(),
            };
            let names = parts
                .into_iter()
                .map(|part| part.trim().trim_end_matches(','));
            licences.extend(names.filter(|name| is_name(name)).map(known));
        } else if let Some((_, rest)) = line.split_once(COMMON) {
            let is_part = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | '+');
            let end = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
            let name = rest[..end].trim_end_matches('.');
            licences.extend(Some(name).filter(|name| is_name(name)).map(known));
        }
    }
    let licences: Vec<String> = licences.into_iter().collect();
    (!licences.is_empty()).then(|| licences.join(" AND "))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}

/// The name that everybody knows a licence by, if Debian has another.
fn known(name: &str) -> String {
    let (stem, ending) = match name.strip_suffix('+') {
        Some(stem) => (stem, "-or-later"),
        None => (name, "-only"),
    };
    if let Some((family @ ("GPL" | "LGPL" | "AGPL"), version)) = stem.rsplit_once('-') {
        match version {
            "1" | "2" | "3" => return format!("{family}-{version}.0{ending}"),
            "1.0" | "2.0" | "2.1" | "3.0" => return format!("{family}-{version}{ending}"),
            _ => {}
        }
    }
    let known = match name {
        "Expat" => "MIT",
        "BSD-2-clause" => "BSD-2-Clause",
        "BSD-3-clause" => "BSD-3-Clause",
        "Apache-2" => "Apache-2.0",
        "Artistic" => "Artistic-1.0-Perl",
        "zlib" => "Zlib",
        other => other,
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_read_from_either_form() {
        for (text, expected) in [
            (
                "Files: *\nLicense: Expat\n\nFiles: x\nLicense: GPL-2+ and BSD-3-clause\n\nLicense: Expat\n text\n",
                Some("BSD-3-Clause AND GPL-2.0-or-later AND MIT"),
            ),
            ("License: GPL-2 or LGPL-2.1+\n", Some("GPL-2 or LGPL-2.1+")),
            (
                "On Debian systems see /usr/share/common-licenses/LGPL-2.1.\nand `/usr/share/common-licenses/GPL-3'\n",
                Some("GPL-3.0-only AND LGPL-2.1-only"),
            ),
            ("License:\n Copyright somebody\n", None),
            ("", None),
        ] {
            assert_eq!(licence(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_copyright_file_belongs_to_a_package() {
        assert_eq!(package_of("usr/share/doc/zlib1g/copyright"), Some("zlib1g"));
        assert_eq!(package_of("usr/share/doc/a/examples/copyright"), None);
        assert_eq!(package_of(&path_of("a")), Some("a"));
    }

    #[test]
    fn a_file_of_nothing_but_licences_is_borne() {
        let text: String = (0..10_000)
            .map(|number| format!("License: L{number}\n"))
            .collect();
        let licence = licence(text.as_bytes()).unwrap();
        assert!(licence.len() < MAX_LICENCES * (MAX_NAME + 5));
    }
}
