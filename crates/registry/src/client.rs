//! The client: what can be asked of a registry. How a question gets there and back, through
//! mirrors, pauses, logins and failures, is in `exchange`; here is what the answers must be.

mod exchange;

use crate::answer::Whole;
use crate::authorization::Authorizer;
use crate::config::ImageConfig;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::Error;
use crate::layer::Layer;
use crate::manifest::{self, Descriptor, Fetched};
use crate::memory::Read;
use crate::mirror::Mirrors;
use crate::reference::{Host, Reference, Repository};
use crate::retry::Retry;
use crate::traffic::Traffic;
use crate::transport::{Transport, Wire};
pub(crate) use exchange::{Call, Target};
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderName};
use std::sync::Arc;
use std::time::Duration;

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// How large things may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A manifest or index, in bytes.
    pub manifest: usize,
    /// An image's configuration, in bytes.
    pub config: usize,
    /// A layer as it is transferred, in bytes.
    pub layer: u64,
    /// One page of a listing, in bytes.
    pub page: usize,
    /// How many items of a listing are asked for at once.
    pub page_items: usize,
    /// How many tags of a repository, or repositories of a host, are listed.
    pub items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            manifest: 4 << 20,
            config: 8 << 20,
            layer: 32 << 30,
            page: 16 << 20,
            page_items: 1000,
            items: 100_000,
        }
    }
}

/// How long things may take.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// Until a connection stands.
    pub connect: Duration,
    /// Until a small answer is here as a whole.
    pub answer: Duration,
    /// Between two pieces of a layer.
    pub idle: Duration,
    /// Until a layer is here as a whole, pauses included.
    pub transfer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            transfer: Duration::from_secs(3600),
        }
    }
}

/// How a client behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who is asking.
    pub credentials: Credentials,
    /// Certificate authorities beside the system's, in PEM.
    pub authorities: Option<Vec<u8>>,
    /// How connections are protected.
    pub transport: Transport,
    /// Other places to ask first.
    pub mirrors: Mirrors,
    /// How large things may be.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How patient to be.
    pub retry: Retry,
}

/// A client of registries with one set of options. Clones share everything; clients with other
/// options share the [`Traffic`] if they are given the same.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) traffic: Traffic,
    /// Which of the traffic's clients this is.
    number: u64,
    wire: Wire,
    authorizer: Authorizer,
}

/// Whether a registry lets us in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It does.
    Open,
    /// It is there, and wants a login that we were not given.
    LoginRequired,
}

/// What a reference means now.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The digest of the manifest or index.
    pub digest: Digest,
    /// Its media type, where the registry says.
    pub media_type: Option<String>,
    /// Its size in bytes, where the registry says.
    pub size: Option<u64>,
}

impl Client {
    /// A client with these options, which shares the hosts' gates with others.
    pub fn new(options: Options, traffic: Traffic) -> Result<Client, Error> {
        let times = &options.timeouts;
        let wire = Wire::new(
            options.transport,
            options.authorities.as_deref(),
            times.connect,
            times.idle,
        )?;
        let authorizer = Authorizer::new(times.answer, &options.retry);
        Ok(Client {
            inner: Arc::new(Inner {
                options,
                number: traffic.number(),
                traffic,
                wire,
                authorizer,
            }),
        })
    }

    /// Whether a registry can be reached and lets us in. It is asked once: who wants to know
    /// whether a host is up does not want to wait until it is.
    pub async fn ping(&self, host: &Host) -> Result<Access, Error> {
        let call = Call::new(
            format!("reaching the registry {host}"),
            Method::GET,
            Target::Base(host),
        );
        match self.once(&call, self.inner.options.limits.page).await {
            Ok(_) => Ok(Access::Open),
            Err(Error::Unauthorized { .. }) if self.is_stranger(host).await? => {
                Ok(Access::LoginRequired)
            }
            Err(error) => Err(error),
        }
    }

    async fn is_stranger(&self, host: &Host) -> Result<bool, Error> {
        Ok(self
            .inner
            .options
            .credentials
            .logins(host, None)
            .await?
            .is_empty())
    }

    /// The repositories of a registry, where it lists them. What is no repository's name is left
    /// out.
    pub async fn catalog(&self, host: &Host) -> Result<Vec<Repository>, Error> {
        let attempt = format!("listing the repositories of {host}");
        let names = self
            .list(&attempt, Target::Catalog(host), "repositories")
            .await?;
        Ok(names
            .iter()
            .filter_map(|name| Repository::on(host, name).ok())
            .collect())
    }

    /// The tags of a repository. What is no tag is left out.
    pub async fn tags(&self, repository: &Repository) -> Result<Vec<String>, Error> {
        let attempt = format!("listing the tags of {repository}");
        let target = Target::Repository(repository, "tags/list".into());
        let mut tags = self.list(&attempt, target, "tags").await?;
        tags.retain(|tag| crate::reference::is_tag(tag));
        Ok(tags)
    }

    /// What a reference means now, with one request where the registry allows it.
    pub async fn resolve(&self, reference: &Reference) -> Result<Resolved, Error> {
        let attempt = format!("resolving {reference}");
        let target = manifest_target(reference);
        let call = Call::new(attempt, Method::HEAD, target).accepting(manifest::ACCEPTED);
        match self.fetch(&call, 0).await {
            Ok(answer) => {
                if let Some(resolved) = resolved(&call.attempt, reference, &answer)? {
                    return Ok(resolved);
                }
            }
            // Not every registry knows HEAD.
            Err(Error::Unsupported { .. } | Error::Malformed { .. }) => {}
            Err(error) => return Err(error),
        }
        let fetched = self.manifest(reference).await?;
        Ok(Resolved {
            digest: fetched.digest,
            media_type: Some(fetched.media_type),
            size: Some(fetched.bytes.len() as u64),
        })
    }

    /// The manifest or index of a reference, checked against its digest. A digest that was read a
    /// moment ago is not asked for again.
    pub async fn manifest(&self, reference: &Reference) -> Result<Fetched, Error> {
        let attempt = format!("reading the manifest of {reference}");
        let repository = reference.repository();
        if let Some(digest) = reference.digest()
            && let Some(read) = self.remembered(repository, digest)
        {
            let (media_type, manifest) =
                manifest::read(&attempt, Some(&read.media_type), &read.body)?;
            return Ok(Fetched {
                digest: digest.clone(),
                media_type,
                bytes: read.body,
                manifest,
            });
        }
        let fetched = self.ask_manifest(attempt, reference).await?;
        let (digest, media_type) = (&fetched.digest, &fetched.media_type);
        self.remember(repository, digest, media_type, &fetched.bytes);
        Ok(fetched)
    }

    fn remembered(&self, repository: &Repository, digest: &Digest) -> Option<Read> {
        let memory = self.inner.traffic.memory();
        memory.find(self.inner.number, repository, digest)
    }

    fn remember(
        &self,
        repository: &Repository,
        digest: &Digest,
        media_type: &str,
        body: &bytes::Bytes,
    ) {
        let memory = self.inner.traffic.memory();
        memory.keep(self.inner.number, repository, digest, media_type, body);
    }

    async fn ask_manifest(&self, attempt: String, reference: &Reference) -> Result<Fetched, Error> {
        let mut call = Call::new(attempt, Method::GET, manifest_target(reference))
            .accepting(manifest::ACCEPTED);
        let limit = self.inner.options.limits.manifest;
        let answer = self.fetch(&call, limit).await?;
        match checked(&call.attempt, reference, &answer) {
            // What a mirror has wrong, the origin may have right.
            Err(_) if answer.mirrored => {
                call.direct = true;
                checked(&call.attempt, reference, &self.fetch(&call, limit).await?)
            }
            outcome => outcome,
        }
    }

    /// The configuration of an image of a repository, checked against its digest; as with manifests.
    pub async fn config(
        &self,
        repository: &Repository,
        config: &Descriptor,
    ) -> Result<ImageConfig, Error> {
        let attempt = format!("reading the configuration {repository}@{}", config.digest);
        let digest = &config.digest;
        if let Some(read) = self.remembered(repository, digest) {
            return ImageConfig::read(&attempt, read.body);
        }
        let limit = self.inner.options.limits.config;
        let bytes = self.blob(&attempt, repository, config, limit).await?;
        self.remember(repository, digest, "", &bytes);
        ImageConfig::read(&attempt, bytes)
    }

    /// A small blob as a whole, checked against its digest.
    pub async fn small_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        limit: usize,
    ) -> Result<bytes::Bytes, Error> {
        let attempt = format!("reading the blob {repository}@{}", blob.digest);
        self.blob(&attempt, repository, blob, limit).await
    }

    async fn blob(
        &self,
        attempt: &str,
        repository: &Repository,
        blob: &Descriptor,
        limit: usize,
    ) -> Result<bytes::Bytes, Error> {
        if blob.size > limit as u64 {
            let reason = format!("{} bytes, at most {limit} are read", blob.size);
            return Err(Error::too_large(attempt, reason));
        }
        let target = Target::Repository(repository, format!("blobs/{}", blob.digest));
        let mut call = Call::new(attempt.into(), Method::GET, target);
        let answer = self.fetch(&call, limit).await?;
        match verified(attempt, &blob.digest, answer.body) {
            Err(_) if answer.mirrored => {
                call.direct = true;
                verified(attempt, &blob.digest, self.fetch(&call, limit).await?.body)
            }
            outcome => outcome,
        }
    }

    /// A layer of an image of a repository, to be read piece by piece. Nothing is asked before
    /// the first piece is.
    pub fn layer(&self, repository: &Repository, layer: &Descriptor) -> Result<Layer, Error> {
        Layer::new(self.clone(), repository, layer)
    }
}

fn manifest_target(reference: &Reference) -> Target<'_> {
    let path = format!("manifests/{}", reference.selector());
    Target::Repository(reference.repository(), path)
}

/// What the head of an answer says of a reference; nothing if it does not say.
fn resolved(
    attempt: &str,
    reference: &Reference,
    answer: &Whole,
) -> Result<Option<Resolved>, Error> {
    let Some(digest) = answer.header(&CONTENT_DIGEST).and_then(Digest::parse) else {
        return Ok(None);
    };
    if let Some(expected) = reference.digest()
        && *expected != digest
    {
        return Err(Error::DigestMismatch {
            attempt: attempt.into(),
            expected: expected.clone(),
            actual: digest,
        });
    }
    Ok(Some(Resolved {
        digest,
        media_type: answer.media_type().map(Into::into),
        size: answer
            .header(&CONTENT_LENGTH)
            .and_then(|length| length.parse().ok()),
    }))
}

/// A manifest whose bytes are what the reference, or else the registry, says they are.
fn checked(attempt: &str, reference: &Reference, answer: &Whole) -> Result<Fetched, Error> {
    let promised = answer.header(&CONTENT_DIGEST).and_then(Digest::parse);
    let digest = match reference.digest().cloned().or(promised) {
        Some(digest) => {
            verified(attempt, &digest, answer.body.clone())?;
            digest
        }
        None => Digest::of(&answer.body),
    };
    let (media_type, manifest) = manifest::read(attempt, answer.media_type(), &answer.body)?;
    Ok(Fetched {
        digest,
        media_type,
        bytes: answer.body.clone(),
        manifest,
    })
}

fn verified(attempt: &str, digest: &Digest, bytes: bytes::Bytes) -> Result<bytes::Bytes, Error> {
    match digest.check(&bytes) {
        Ok(()) => Ok(bytes),
        Err(actual) => Err(Error::DigestMismatch {
            attempt: attempt.into(),
            expected: digest.clone(),
            actual,
        }),
    }
}
