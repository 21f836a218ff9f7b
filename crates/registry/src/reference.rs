//! Names of images: a host, a repository on it, and a tag or a digest. The grammar and Docker
//! Hub's short forms are those of the OCI library; what it takes and no registry would is refused
//! here: tags that are not ASCII, digests in capitals, repositories in capitals. It knows no IPv6
//! addresses, which are added here.

use crate::digest::Digest;
use oci_spec::distribution::Reference as Parsed;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Docker Hub's name in references.
const HUB: &str = "docker.io";
/// Names that all mean Docker Hub.
const HUB_ALIASES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
/// Where Docker Hub answers.
const HUB_ADDRESS: &str = "registry-1.docker.io";
/// The longest text that is looked at.
const LONGEST: usize = 1024;

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no image reference: {reason}")]
pub struct ReferenceError {
    /// What was read, cut if it is long.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

fn refuse(text: &str, reason: impl fmt::Display) -> ReferenceError {
    ReferenceError {
        text: text.chars().take(200).collect(),
        reason: reason.to_string(),
    }
}

/// A registry's host and port, as references spell it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(String);

impl Host {
    /// Reads `host[:port]`; a scheme before it and a slash after it are taken off.
    pub fn parse(text: &str) -> Result<Host, ReferenceError> {
        let bare = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))
            .unwrap_or(text);
        let bare = bare.strip_suffix('/').unwrap_or(bare);
        if HUB_ALIASES.contains(&bare.to_ascii_lowercase().as_str()) {
            return Ok(Host(HUB.into()));
        }
        if bare.contains('/') || bare.is_empty() {
            return Err(refuse(text, "a host and an optional port are expected"));
        }
        // A bare name is a host here, whereas in a reference it would be a repository: a host's
        // port makes the difference, so one is lent to it.
        let lent = match has_port(bare) {
            true => bare.to_string(),
            false => format!("{bare}:1"),
        };
        let repository = Repository::parse(&format!("{lent}/x"))
            .map_err(|_| refuse(text, "the host or its port is malformed"))?;
        match repository.host.0.as_str() == HUB {
            true => Err(refuse(text, "the host is malformed")),
            false => Ok(Host(bare.to_ascii_lowercase())),
        }
    }

    /// As references spell it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its API answers: Docker Hub's is not at its name.
    pub fn address(&self) -> &str {
        match self.is_docker_hub() {
            true => HUB_ADDRESS,
            false => &self.0,
        }
    }

    /// Whether this is Docker Hub.
    pub fn is_docker_hub(&self) -> bool {
        self.0 == HUB
    }

    /// Whether only this machine is meant.
    pub fn is_loopback(&self) -> bool {
        let name = match self.0.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((address, _)) => address,
            None => self.0.split(':').next().unwrap_or_default(),
        };
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

fn has_port(authority: &str) -> bool {
    match authority.rsplit_once(']') {
        Some((_, rest)) => rest.starts_with(':'),
        None => authority.contains(':'),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A repository of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Repository {
    host: Host,
    name: String,
}

impl Repository {
    /// Reads `[host/]name`, with Docker Hub's short forms, and no tag or digest.
    pub fn parse(text: &str) -> Result<Repository, ReferenceError> {
        let (repository, tag, digest) = split(text)?;
        // The library adds a tag where there is none; then the text is one plus its tag.
        let named = digest.is_some() || tag.is_some_and(|tag| text.ends_with(&format!(":{tag}")));
        match named {
            true => Err(refuse(text, "a repository has no tag and no digest")),
            false => Ok(repository),
        }
    }

    /// A repository of a host by its name there, where `library/` is not implied.
    pub fn on(host: &Host, name: &str) -> Result<Repository, ReferenceError> {
        // Judged on a host with no short forms, so that the name stays as it is.
        let judged = Repository::parse(&format!("host.invalid/{name}"))?;
        Ok(Repository {
            host: host.clone(),
            name: judged.name,
        })
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The name on the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The image with this tag.
    pub fn tagged(&self, tag: &str) -> Result<Reference, ReferenceError> {
        match is_tag(tag) {
            true => Ok(Reference {
                repository: self.clone(),
                tag: Some(tag.into()),
                digest: None,
            }),
            false => Err(refuse(tag, "malformed tag")),
        }
    }

    /// The image with this digest.
    pub fn at(&self, digest: &Digest) -> Reference {
        Reference {
            repository: self.clone(),
            tag: None,
            digest: Some(digest.clone()),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl FromStr for Repository {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Repository, ReferenceError> {
        Repository::parse(text)
    }
}

/// An image: a repository with a tag, a digest, or both. Where both are given the digest says
/// which image it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    repository: Repository,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Reads a reference as people write it: `nginx`, `ghcr.io/team/app:1.2`,
    /// `localhost:5000/app@sha256:…`. Without tag and digest the tag is `latest`.
    pub fn parse(text: &str) -> Result<Reference, ReferenceError> {
        let (repository, tag, digest) = split(text)?;
        Ok(Reference {
            repository,
            tag,
            digest,
        })
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.repository.host
    }

    /// The tag, if there is one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if there is one.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// What stands for the image in an address: the digest, else the tag.
    pub(crate) fn selector(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.as_str(),
            (None, Some(tag)) => tag,
            (None, None) => "latest",
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Reference, ReferenceError> {
        Reference::parse(text)
    }
}

type Parts = (Repository, Option<String>, Option<Digest>);

fn split(text: &str) -> Result<Parts, ReferenceError> {
    if text.len() > LONGEST {
        return Err(refuse(text, format!("longer than {LONGEST} bytes")));
    }
    // The library's grammar takes letters of every script in tags.
    if !text.is_ascii() {
        return Err(refuse(text, "only ASCII characters are allowed"));
    }
    let (host, rest) = numbered_host(text)?;
    let parsed = Parsed::try_from(rest.as_str()).map_err(|error| refuse(text, error))?;
    let host = match host {
        Some(host) => host,
        None => parsed.registry().to_ascii_lowercase(),
    };
    let host = match HUB_ALIASES.contains(&host.as_str()) {
        true => HUB.to_string(),
        false => host,
    };
    let mut name = parsed.repository().to_string();
    if host == HUB && !name.contains('/') {
        name = format!("library/{name}");
    }
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(refuse(text, "the repository must be in lower case"));
    }
    if let Some(port) = port(&host)
        && !port.parse::<u16>().is_ok_and(|port| port > 0)
    {
        return Err(refuse(text, "the port must be from 1 to 65535"));
    }
    let digest = match parsed.digest() {
        None => None,
        Some(digest) => Some(
            Digest::parse(digest)
                .ok_or_else(|| refuse(text, "the digest must be sha256 or sha512 in lower case"))?,
        ),
    };
    let repository = Repository {
        host: Host(host),
        name,
    };
    Ok((repository, parsed.tag().map(Into::into), digest))
}

/// Takes an IPv6 host off, lending another in its place.
fn numbered_host(text: &str) -> Result<(Option<String>, String), ReferenceError> {
    let Some((address, rest)) = text.strip_prefix('[').and_then(|r| r.split_once(']')) else {
        return Ok((None, text.into()));
    };
    let address: Ipv6Addr = address
        .parse()
        .map_err(|_| refuse(text, "malformed IPv6 address"))?;
    let (port, rest) = rest
        .split_once('/')
        .ok_or_else(|| refuse(text, "no repository after the host"))?;
    let well_formed = port.is_empty() || port.strip_prefix(':').is_some_and(|p| !p.is_empty());
    match well_formed {
        true => Ok((
            Some(format!("[{address}]{port}")),
            format!("host.invalid/{rest}"),
        )),
        false => Err(refuse(text, "only a port may follow the brackets")),
    }
}

fn port(host: &str) -> Option<&str> {
    match host.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    }
}

/// Whether a text may be a tag.
pub(crate) fn is_tag(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes.next().is_some_and(word)
        && bytes.all(|b| word(b) || b == b'.' || b == b'-')
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
