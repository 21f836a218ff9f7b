//! Which packages a statement's package URL covers: every field that it states must be the same;
//! what it leaves open is open.

use crate::purl::Purl;

/// Whether `stated` covers `package`.
pub(crate) fn covers(stated: &Purl, package: &Purl) -> bool {
    let given = |stated: &str, actual: &str| stated.is_empty() || stated == actual;
    stated.kind == package.kind
        && stated.namespace == package.namespace
        && stated.name == package.name
        && given(&stated.version, &package.version)
        && given(&stated.subpath, &package.subpath)
        && stated
            .qualifiers
            .iter()
            .all(|(key, value)| package.qualifiers.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_open_and_what_is_stated_must_be_so() {
        let package = "pkg:deb/debian/curl@7.88.1?arch=amd64&distro=debian-12.7";
        for (stated, expected) in [
            ("pkg:deb/debian/curl", true),
            ("pkg:deb/debian/curl@7.88.1", true),
            ("pkg:deb/debian/curl?arch=amd64", true),
            (package, true),
            ("pkg:deb/debian/curl@7.88.2", false),
            ("pkg:deb/debian/curl?arch=arm64", false),
            ("pkg:deb/debian/curl?vendor=x", false),
            ("pkg:deb/curl", false),
            ("pkg:deb/ubuntu/curl", false),
            ("pkg:rpm/debian/curl", false),
            ("pkg:deb/debian/libcurl4", false),
        ] {
            let (stated, package) = (Purl::parse(stated), Purl::parse(package));
            assert_eq!(covers(&stated.unwrap(), &package.unwrap()), expected);
        }
    }
}
