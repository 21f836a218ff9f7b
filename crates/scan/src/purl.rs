//! Package URLs: one name for a package whatever tool speaks of it. Written in the one canonical
//! form, read in all.

use crate::os::Os;
use crate::package::{Ecosystem, Package, Source};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// A package URL, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Purl {
    /// The type, such as `deb`.
    pub kind: String,
    /// What stands before the name: a vendor, a scope or a group. Its parts are parted by slashes.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The version; empty where it speaks of all.
    pub version: String,
    /// What else it says, such as the architecture.
    pub qualifiers: BTreeMap<String, String>,
    /// A path inside the package.
    pub subpath: String,
}

impl Purl {
    /// The URL of an installed package.
    pub fn of(ecosystem: Ecosystem, package: &Package, os: Option<&Os>) -> Self {
        let mut purl = Purl {
            kind: ecosystem.purl_type().into(),
            version: package.version.clone(),
            ..Purl::default()
        };
        (purl.namespace, purl.name) = match ecosystem {
            Ecosystem::Debian | Ecosystem::Alpine | Ecosystem::Rpm => {
                let vendor = os.map_or("", |os| os.family.name()).replace(' ', "-");
                (vendor, package.name.clone())
            }
            Ecosystem::Maven => split(&package.name, ':'),
            Ecosystem::Go | Ecosystem::Npm | Ecosystem::Composer => split(&package.name, '/'),
            _ => (String::new(), package.name.clone()),
        };
        match ecosystem {
            Ecosystem::Python => purl.name = purl.name.to_lowercase().replace('_', "-"),
            Ecosystem::Npm | Ecosystem::Composer => {
                purl.namespace = purl.namespace.to_lowercase();
                purl.name = purl.name.to_lowercase();
            }
            Ecosystem::Rpm => {
                // Here, unlike for Debian, the epoch is not part of the version.
                if let Some((epoch, rest)) = package.version.split_once(':') {
                    purl.qualify("epoch", epoch);
                    purl.version = rest.into();
                }
            }
            _ => {}
        }
        if let Some(architecture) = &package.architecture {
            purl.qualify("arch", architecture);
        }
        if let Some(os) = os.filter(|_| ecosystem.detector().is_os()) {
            purl.qualify("distro", &os.to_string().replace(' ', "-"));
        }
        if let Some(source) = &package.source {
            let upstream = if source.version == package.version {
                source.name.clone()
            } else {
                format!("{}@{}", source.name, source.version)
            };
            if upstream != package.name {
                purl.qualify("upstream", &upstream);
            }
        }
        if let Some(module) = &package.modularity {
            purl.qualify("rpmmod", module);
        }
        purl
    }

    fn qualify(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.qualifiers.insert(key.into(), value.into());
        }
    }

    /// The package that it speaks of; nothing where we know no such ecosystem.
    pub fn package(&self) -> Option<(Ecosystem, Package)> {
        let ecosystem = Ecosystem::of_purl_type(&self.kind)?;
        let name = match ecosystem {
            Ecosystem::Maven => join(&self.namespace, ':', &self.name),
            Ecosystem::Go | Ecosystem::Npm | Ecosystem::Composer => {
                join(&self.namespace, '/', &self.name)
            }
            _ => self.name.clone(),
        };
        let qualifier = |key: &str| self.qualifiers.get(key).cloned();
        // Some writers keep the epoch apart for every kind of package.
        let version = match qualifier("epoch").filter(|epoch| epoch != "0") {
            Some(epoch) if !self.version.contains(':') => format!("{epoch}:{}", self.version),
            _ => self.version.clone(),
        };
        let source = qualifier("upstream").map(|upstream| match upstream.rsplit_once('@') {
            Some((name, version)) => Source {
                name: name.into(),
                version: version.into(),
            },
            None => Source {
                name: upstream,
                version: version.clone(),
            },
        });
        let itself = || Source {
            name: name.clone(),
            version: version.clone(),
        };
        let source = match ecosystem {
            Ecosystem::Debian | Ecosystem::Alpine => Some(source.unwrap_or_else(itself)),
            Ecosystem::Rpm => source,
            _ => None,
        };
        let package = Package {
            architecture: qualifier("arch"),
            modularity: qualifier("rpmmod"),
            source,
            ..Package::new(name.clone(), version.clone())
        };
        Some((ecosystem, package))
    }

    /// Takes a URL apart; nothing where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("pkg:")?.trim_start_matches('/');
        let (rest, subpath) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (kind, rest) = rest.split_once('/')?;
        // The version starts at the last @, for a scope of npm may start with an unescaped one.
        let (path, version) = match rest.rsplit_once('@') {
            Some((path, version)) if !path.is_empty() && !version.contains('/') => (path, version),
            _ => (rest, ""),
        };
        let (namespace, name) = split(path.trim_matches('/'), '/');
        let mut qualifiers = BTreeMap::new();
        for pair in query.split('&') {
            if let Some((key, value)) = pair.split_once('=').filter(|(_, value)| !value.is_empty())
            {
                qualifiers.insert(key.to_lowercase(), decode(value)?);
            }
        }
        let purl = Purl {
            kind: kind.to_lowercase(),
            namespace: decode(&namespace)?,
            name: decode(&name)?,
            version: decode(version)?,
            qualifiers,
            subpath: decode(subpath.trim_matches('/'))?,
        };
        (!purl.kind.is_empty() && !purl.name.is_empty()).then_some(purl)
    }
}

impl fmt::Display for Purl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "pkg:{}/", self.kind)?;
        for part in self.namespace.split('/').filter(|part| !part.is_empty()) {
            write!(formatter, "{}/", encode(part))?;
        }
        formatter.write_str(&encode(&self.name))?;
        if !self.version.is_empty() {
            write!(formatter, "@{}", encode(&self.version))?;
        }
        for (place, (key, value)) in self.qualifiers.iter().enumerate() {
            let mark = if place == 0 { '?' } else { '&' };
            write!(formatter, "{mark}{key}={}", encode(value))?;
        }
        if !self.subpath.is_empty() {
            let parts: Vec<_> = self.subpath.split('/').map(encode).collect();
            write!(formatter, "#{}", parts.join("/"))?;
        }
        Ok(())
    }
}

fn split(name: &str, mark: char) -> (String, String) {
    match name.rsplit_once(mark) {
        Some((namespace, name)) => (namespace.into(), name.into()),
        None => (String::new(), name.into()),
    }
}

fn join(namespace: &str, mark: char, name: &str) -> String {
    if namespace.is_empty() {
        name.into()
    } else {
        format!("{namespace}{mark}{name}")
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' | b':' => {
                encoded.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::Family;

    #[test]
    fn a_package_has_one_url_and_can_be_read_from_it() {
        let debian = Os::new(Family::Debian, "12.7");
        let alma = Os::new(Family::Alma, "9.4");
        let source = |name: &str, version: &str| {
            Some(Source {
                name: name.into(),
                version: version.into(),
            })
        };
        for (ecosystem, package, os, url) in [
            (
                Ecosystem::Debian,
                Package {
                    architecture: Some("amd64".into()),
                    source: source("gcc-12", "12.2.0-14"),
                    ..Package::new("libstdc++6", "1:12.2.0-14+b1")
                },
                Some(&debian),
                "pkg:deb/debian/libstdc%2B%2B6@1:12.2.0-14%2Bb1?arch=amd64&distro=debian-12.7&upstream=gcc-12%4012.2.0-14",
            ),
            (
                Ecosystem::Debian,
                Package {
                    source: source("adduser", "3.134"),
                    ..Package::new("adduser", "3.134")
                },
                Some(&debian),
                "pkg:deb/debian/adduser@3.134?distro=debian-12.7",
            ),
            (
                Ecosystem::Rpm,
                Package {
                    architecture: Some("x86_64".into()),
                    ..Package::new("openssl", "1:3.0.7-27.el9")
                },
                Some(&alma),
                "pkg:rpm/alma/openssl@3.0.7-27.el9?arch=x86_64&distro=alma-9.4&epoch=1",
            ),
            (
                Ecosystem::Npm,
                Package::new("@babel/core", "7.0.0"),
                None,
                "pkg:npm/%40babel/core@7.0.0",
            ),
            (
                Ecosystem::Go,
                Package::new("github.com/a/b/v2", "v2.0.0+incompatible"),
                None,
                "pkg:golang/github.com/a/b/v2@v2.0.0%2Bincompatible",
            ),
            (
                Ecosystem::Maven,
                Package::new("org.slf4j:slf4j-api", "1.7"),
                Some(&debian),
                "pkg:maven/org.slf4j/slf4j-api@1.7",
            ),
            (
                Ecosystem::Cargo,
                Package::new("serde", "1.0.0"),
                None,
                "pkg:cargo/serde@1.0.0",
            ),
        ] {
            let purl = Purl::of(ecosystem, &package, os);
            assert_eq!(purl.to_string(), url);
            assert_eq!(Purl::parse(url).as_ref(), Some(&purl));
            assert_eq!(purl.package(), Some((ecosystem, package)));
        }
    }

    #[test]
    fn urls_of_other_tools_are_understood() {
        let read = |url: &str| {
            Purl::parse(url)
                .and_then(|purl| purl.package())
                .map(|(_, package)| package)
        };
        let package =
            read("pkg:deb/debian/libc6@2.36-9?arch=amd64&epoch=1&distro=debian-12").unwrap();
        assert_eq!(package.version, "1:2.36-9");
        let package = read("pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?upstream=zlib").unwrap();
        assert_eq!(
            (package.source_name(), package.source_version()),
            ("zlib", "1:1.2.13.dfsg-1")
        );
        let package = read("pkg:npm/@scope/name@1.0.0").unwrap();
        assert_eq!(
            (package.name.as_str(), package.version.as_str()),
            ("@scope/name", "1.0.0")
        );
        for wrong in [
            "",
            "deb/a@1",
            "pkg:deb",
            "pkg:deb/",
            "pkg:deb/%zz@1",
            "pkg:deb/%ff",
        ] {
            assert_eq!(Purl::parse(wrong), None, "{wrong}");
        }
    }
}
