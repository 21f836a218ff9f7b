//! Asking a registry which images a repository has. Tags are listed only where no condition names
//! what is wanted; a tag that is known is asked for its digest alone, and is fetched only if it
//! moved. One bad tag or platform never stops the others.

use crate::access::Access;
use crate::found::{Found, Purpose};
use crate::known::Images;
use crate::message::Job;
use crate::object::IMAGE;
use crate::wanted::Wanted;
use crate::work::{Operator, Trouble};
use futures::{StreamExt, TryStreamExt, stream};
use muster_api::Platform;
use muster_api::filter::Exact;
use muster_registry::{
    Descriptor, Digest, Error, Fetched, ImageManifest, Manifest, Reference, Repository,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many tags of a repository are looked at at once; how many requests a host gets at once is
/// the client's matter.
const AT_ONCE: usize = 8;
/// How many images a tag may have, and how deep indexes may be nested.
const MOST_IMAGES: usize = 1024;
const DEEPEST: usize = 3;

/// What came of listing.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The names of the Images that are there now.
    pub(crate) made: BTreeSet<String>,
    /// The names of Images that may be there still.
    pub(crate) unsure: BTreeSet<String>,
    /// What could not be listed, and why.
    pub(crate) failures: Vec<String>,
    /// What a condition names and the registry does not have.
    pub(crate) missing: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.made.extend(other.made);
        self.unsure.extend(other.unsure);
        self.failures.extend(other.failures);
        self.missing.extend(other.missing);
    }
}

/// Lists one repository for one job.
pub(crate) struct Listing<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) access: &'a Access,
    pub(crate) job: &'a Job,
    /// Whether this is the last try, after which what might get better counts as failed.
    pub(crate) last: bool,
}

impl Listing<'_> {
    /// Makes the Images of a repository.
    pub(crate) async fn repository(&self, wanted: &Arc<Wanted>) -> Result<Tally, Trouble> {
        let repository = &wanted.repository;
        let (namespace, registry) = (&self.job.namespace, &self.access.name);
        let known = Images::read(self.operator, namespace, registry, repository).await?;
        let mut tally = Tally::default();
        let candidates = self.candidates(wanted, &mut tally).await?;
        let looked = stream::iter(candidates)
            .map(|candidate| self.look(wanted, &known, candidate))
            .buffer_unordered(AT_ONCE);
        let looked = looked.try_fold(&mut tally, async |tally, one| {
            tally.add(one);
            Ok(tally)
        });
        looked.await?;
        if !tally.failures.is_empty() {
            tally.unsure.extend(known.names());
        }
        Ok(tally)
    }

    /// The tags and digests to look at.
    async fn candidates(
        &self,
        wanted: &Arc<Wanted>,
        tally: &mut Tally,
    ) -> Result<BTreeSet<Exact>, Trouble> {
        let candidates = wanted.selection.candidates();
        let mut named = candidates.named;
        if candidates.listing {
            let tags = self.access.client.tags(&wanted.repository).await;
            let tags = self.judge(tally, tags).await?.unwrap_or_default();
            let wanted = wanted.clone();
            // There may be many, and many conditions.
            let sift = move || {
                let tags = tags.into_iter();
                let tags = tags.filter(|tag| wanted.selection.may_want(tag));
                tags.map(Exact::Tag).collect::<Vec<_>>()
            };
            let sifted = tokio::task::spawn_blocking(sift).await;
            named.extend(sifted.map_err(|error| Trouble::Transient(error.to_string()))?);
        }
        Ok(named)
    }

    /// Makes the Images behind a tag or a digest.
    async fn look(
        &self,
        wanted: &Wanted,
        known: &Images,
        candidate: Exact,
    ) -> Result<Tally, Trouble> {
        let mut tally = Tally::default();
        let client = &self.access.client;
        let repository = &wanted.repository;
        let (tag, name) = match &candidate {
            Exact::Tag(tag) => (Some(tag.as_str()), format!("{repository}:{tag}")),
            Exact::Digest(digest) => (None, format!("{repository}@{digest}")),
        };
        // What cannot be asked for cannot be there.
        let Some(reference) = reference(repository, &candidate) else {
            tally.missing.push(name);
            return Ok(tally);
        };
        if known.has(tag, reference.digest()) {
            let resolved = client.resolve(&reference).await;
            let Some(resolved) = self.unless_missing(&mut tally, &name, resolved).await? else {
                return Ok(tally);
            };
            let digest = resolved.digest;
            let Some(labels) = labels(wanted, tag, &digest) else {
                return Ok(tally);
            };
            if let Some(images) = known.all(self.access, tag, &digest) {
                let purpose = self.purpose(labels, images.len());
                for image in images {
                    let (name, body) = (image.name(), purpose.relabelled(image));
                    self.apply(&mut tally, name, &body).await?;
                }
                return Ok(tally);
            }
        }
        let fetched = client.manifest(&reference).await;
        let Some(fetched) = self.unless_missing(&mut tally, &name, fetched).await? else {
            return Ok(tally);
        };
        let Some(labels) = labels(wanted, tag, &fetched.digest) else {
            return Ok(tally);
        };
        let found = self.images(&mut tally, repository, tag, fetched).await?;
        // What could not be listed counts too: with it missing, a later job has to look again.
        let count = found.len().saturating_add(tally.failures.len());
        let purpose = self.purpose(labels, count);
        for image in &found {
            let name = image.name(&self.access.name, repository);
            let body = purpose.object(repository, &name, image);
            self.apply(&mut tally, &name, &body).await?;
        }
        Ok(tally)
    }

    fn purpose(&self, labels: BTreeMap<String, String>, count: usize) -> Purpose<'_> {
        Purpose {
            access: self.access,
            job: self.job,
            labels,
            count,
        }
    }

    async fn apply(
        &self,
        tally: &mut Tally,
        name: &str,
        body: &impl serde::Serialize,
    ) -> Result<(), Trouble> {
        let client = self.operator.client();
        IMAGE.apply(client, &self.job.namespace, name, body).await?;
        tally.made.insert(name.to_owned());
        Ok(())
    }

    /// The images of a manifest: itself, or those of an index.
    async fn images(
        &self,
        tally: &mut Tally,
        repository: &Repository,
        tag: Option<&str>,
        fetched: Fetched,
    ) -> Result<Vec<Found>, Trouble> {
        let mut found = Vec::new();
        let index = match fetched.manifest {
            Manifest::Image(manifest) => {
                let image = self
                    .image(tally, repository, fetched.digest, None, manifest)
                    .await?;
                found.extend(image);
                return Ok(named(found, tag, None));
            }
            Manifest::Index(index) => index,
        };
        let mut seen = BTreeSet::new();
        let mut open: Vec<(Descriptor, usize)> = index.images().map(|e| (e.clone(), 1)).collect();
        open.reverse();
        while let Some((entry, depth)) = open.pop() {
            let platform = entry.platform.as_ref();
            let unwanted = platform.is_some_and(|platform| !self.access.spec.wants(platform));
            if unwanted || !seen.insert(entry.digest.clone()) {
                continue;
            }
            if seen.len() > MOST_IMAGES || depth > DEEPEST {
                let why = format!(
                    "{repository}@{}: more than {MOST_IMAGES} images, or indexes nested more than {DEEPEST} deep",
                    fetched.digest
                );
                tally.failures.push(why);
                break;
            }
            let child = repository.at(&entry.digest);
            let child = self.access.client.manifest(&child).await;
            let Some(child) = self.judge(tally, child).await? else {
                continue;
            };
            match child.manifest {
                Manifest::Image(manifest) => found.extend(
                    self.image(tally, repository, child.digest, entry.platform, manifest)
                        .await?,
                ),
                Manifest::Index(index) => {
                    open.extend(index.images().map(|entry| (entry.clone(), depth + 1)));
                }
            }
        }
        Ok(named(found, tag, Some(&fetched.digest)))
    }

    /// An image that is wanted; what is none (a chart, a signature) is passed over.
    async fn image(
        &self,
        tally: &mut Tally,
        repository: &Repository,
        digest: Digest,
        platform: Option<Platform>,
        manifest: ImageManifest,
    ) -> Result<Option<Found>, Trouble> {
        if !manifest.is_image() {
            return Ok(None);
        }
        let config = self.access.client.config(repository, &manifest.config);
        let Some(config) = self.judge(tally, config.await).await? else {
            return Ok(None);
        };
        let platform = platform.or_else(|| config.platform.clone());
        let wants = |platform: &Platform| self.access.spec.wants(platform);
        Ok(platform.as_ref().is_none_or(wants).then_some(Found {
            tag: None,
            digest,
            index: None,
            platform,
            manifest,
            config,
        }))
    }

    /// As [`Self::judge`], for what need not be there.
    async fn unless_missing<T>(
        &self,
        tally: &mut Tally,
        name: &str,
        outcome: Result<T, Error>,
    ) -> Result<Option<T>, Trouble> {
        match outcome {
            Err(Error::NotFound { .. }) => {
                tally.missing.push(name.to_owned());
                Ok(None)
            }
            outcome => self.judge(tally, outcome).await,
        }
    }

    /// Notes what will not get better; what might is tried again as a whole, but for the last time.
    async fn judge<T>(
        &self,
        tally: &mut Tally,
        outcome: Result<T, Error>,
    ) -> Result<Option<T>, Trouble> {
        let error = match outcome {
            Ok(value) => return Ok(Some(value)),
            Err(error) => self.access.explain(error).await?,
        };
        if error.is_transient() && !self.last {
            return Err(error.into());
        }
        tally.failures.push(error.to_string());
        Ok(None)
    }
}

fn reference(repository: &Repository, candidate: &Exact) -> Option<Reference> {
    match candidate {
        Exact::Tag(tag) => repository.tagged(tag).ok(),
        Exact::Digest(digest) => Some(repository.at(&Digest::parse(digest)?)),
    }
}

/// The labels of the conditions that an image meets; none if it is not wanted.
fn labels(wanted: &Wanted, tag: Option<&str>, digest: &Digest) -> Option<BTreeMap<String, String>> {
    let met = wanted.selection.judge(tag, digest.as_str())?;
    Some(
        met.into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    )
}

fn named(mut found: Vec<Found>, tag: Option<&str>, index: Option<&Digest>) -> Vec<Found> {
    for image in &mut found {
        image.tag = tag.map(str::to_owned);
        image.index = index.cloned();
    }
    found
}
