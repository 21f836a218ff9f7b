//! What is attached to an image: signatures, bills, statements. There are four ways in use to attach
//! something, and all are looked at: the registry's own list of referrers, an index under a tag made
//! of the digest where the registry keeps no list, the tags of cosign, and the entries that builders
//! put beside an image into its index.

use crate::client::{Call, Client, Target};
use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{self, Descriptor, Index, Manifest, media};
use crate::reference::Repository;
use http::Method;
use std::collections::BTreeSet;

/// The annotation by which a builder says which image of an index an entry is about.
const ABOUT: &str = "vnd.docker.reference.digest";

impl Client {
    /// The manifests that are attached to an image, each once.
    pub async fn referrers(
        &self,
        repository: &Repository,
        image: &Digest,
    ) -> Result<Vec<Descriptor>, Error> {
        let mut found = match self.listed(repository, image).await? {
            Some(index) => index.entries,
            None => Vec::new(),
        };
        let tag = image.as_str().replace(':', "-");
        if found.is_empty()
            && let Some(Manifest::Index(index)) = self.tagged(repository, &tag).await?
        {
            found.extend(index.entries);
        }
        found.extend(self.attestation(repository, &format!("{tag}.att")).await?);
        let mut seen = BTreeSet::new();
        found.retain(|entry| entry.is_manifest() && seen.insert(entry.digest.clone()));
        Ok(found)
    }

    /// The registry's own list; none where it keeps none.
    async fn listed(
        &self,
        repository: &Repository,
        image: &Digest,
    ) -> Result<Option<Index>, Error> {
        let attempt = format!("asking what is attached to {repository}@{image}");
        let target = Target::Repository(repository, format!("referrers/{image}"));
        let call = Call::new(attempt, Method::GET, target).accepting(media::OCI_INDEX);
        let limit = self.inner.options.limits.manifest;
        let answer = match self.fetch(&call, limit).await {
            Ok(answer) => answer,
            // Registries say in many ways that they do not know the question.
            Err(Error::NotFound { .. } | Error::Unsupported { .. } | Error::Malformed { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match manifest::read(&call.attempt, Some(media::OCI_INDEX), &answer.body) {
            Ok((_, Manifest::Index(index))) => Ok(Some(index)),
            _ => Ok(None),
        }
    }

    async fn tagged(&self, repository: &Repository, tag: &str) -> Result<Option<Manifest>, Error> {
        let Ok(reference) = repository.tagged(tag) else {
            return Ok(None);
        };
        match self.manifest(&reference).await {
            Ok(fetched) => Ok(Some(fetched.manifest)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What cosign keeps under a tag of its own.
    async fn attestation(
        &self,
        repository: &Repository,
        tag: &str,
    ) -> Result<Option<Descriptor>, Error> {
        let Ok(reference) = repository.tagged(tag) else {
            return Ok(None);
        };
        match self.resolve(&reference).await {
            Ok(resolved) => Ok(Some(Descriptor {
                media_type: resolved
                    .media_type
                    .unwrap_or_else(|| media::OCI_MANIFEST.into()),
                digest: resolved.digest,
                size: resolved.size.unwrap_or_default(),
                platform: None,
                artifact_type: None,
                annotations: Default::default(),
            })),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Index {
    /// The entries that are about an image of this index.
    pub fn attached<'a>(&'a self, image: &'a Digest) -> impl Iterator<Item = &'a Descriptor> {
        self.entries.iter().filter(move |entry| {
            let about = entry.annotations.get(ABOUT);
            entry.is_manifest() && about.is_some_and(|about| about == image.as_str())
        })
    }
}
