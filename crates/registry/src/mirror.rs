//! Mirrors: other places that have the content of a host, asked first. A mirror is named as
//! `[http[s]://]host[:port][/prefix]`; the prefix goes before the repository, as pull-through
//! caches want it.

use crate::reference::{Host, ReferenceError, Repository};
use std::collections::BTreeMap;

/// A place that has the content of another host.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    pub(crate) host: Host,
    pub(crate) prefix: String,
    pub(crate) plain: bool,
}

impl Mirror {
    /// Reads a mirror's address.
    pub fn parse(text: &str) -> Result<Mirror, ReferenceError> {
        let plain = text.starts_with("http://");
        let bare = text.split_once("://").map_or(text, |(_, bare)| bare);
        let bare = bare.trim_end_matches('/');
        let (host, prefix) = bare.split_once('/').unwrap_or((bare, ""));
        let host = Host::parse(host)?;
        if !prefix.is_empty() {
            Repository::on(&host, prefix)?;
        }
        Ok(Mirror {
            host,
            prefix: prefix.into(),
            plain,
        })
    }

    /// The name of a repository there.
    pub(crate) fn repository(&self, name: &str) -> String {
        match self.prefix.is_empty() {
            true => name.into(),
            false => format!("{}/{name}", self.prefix),
        }
    }
}

/// The mirrors of each host, in the order they are tried.
#[derive(Clone, Debug, Default)]
pub struct Mirrors(BTreeMap<Host, Vec<Mirror>>);

impl Mirrors {
    /// Adds a mirror after the others of that host.
    pub fn add(&mut self, of: Host, mirror: Mirror) {
        self.0.entry(of).or_default().push(mirror);
    }

    pub(crate) fn of(&self, host: &Host) -> &[Mirror] {
        self.0.get(host).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_may_have_a_scheme_and_a_prefix() {
        for (text, host, repository, plain) in [
            ("mirror.example", "mirror.example", "library/nginx", false),
            ("http://cache:5000/", "cache:5000", "library/nginx", true),
            (
                "https://harbor.example/hub/proxy",
                "harbor.example",
                "hub/proxy/library/nginx",
                false,
            ),
        ] {
            let mirror = Mirror::parse(text).expect(text);
            assert_eq!(mirror.host.as_str(), host);
            assert_eq!(mirror.repository("library/nginx"), repository);
            assert_eq!(mirror.plain, plain);
        }
        for text in ["", "a b", "host/Up", "host/../x", "ftp://host:x"] {
            assert!(Mirror::parse(text).is_err(), "{text}");
        }
    }
}
