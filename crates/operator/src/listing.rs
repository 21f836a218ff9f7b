//! Asking a registry which images a repository has. Tags are listed only where no condition names
//! what is wanted; a tag that is known is asked for its digest alone, and is fetched only if it
//! moved. A wanted digest that a wanted tag means gets no Images of its own: the tag's answer for it.
//! One bad tag or platform never stops the others.

use crate::access::Access;
use crate::found::{Found, Purpose};
use crate::known::Images;
use crate::meaning::others;
use crate::message::Job;
use crate::object::IMAGE;
use crate::tally::Tally;
use crate::wanted::{Labels, Wanted};
use crate::work::{Operator, Trouble};
use futures::{StreamExt, TryStreamExt, stream};
use muster_api::Platform;
use muster_api::filter::{Exact, Selection};
use muster_registry::{
    Descriptor, Digest, Error, Fetched, ImageManifest, Manifest, Reference, Repository,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many tags of a repository are looked at at once; how many requests a host gets at once is
/// the client's matter.
pub(crate) const AT_ONCE: usize = 8;
/// How many images a tag may have, and how deep indexes may be nested.
const MOST_IMAGES: usize = 1024;
const DEEPEST: usize = 3;

/// What is looked for in a repository.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) wanted: &'a Wanted,
    /// Which conditions decide.
    by: &'a Selection<Labels>,
    /// What is there already.
    pub(crate) known: &'a Images,
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
        let (tags, mut digests): (BTreeSet<Exact>, BTreeSet<Exact>) = candidates
            .into_iter()
            .partition(|candidate| matches!(candidate, Exact::Tag(_)));
        let look = Look {
            wanted,
            by: &wanted.selection,
            known: &known,
        };
        tally.add(self.look_at(look, tags.clone()).await?);
        tally.answer(repository, &mut digests);
        if wanted.is_narrowed() && !digests.is_empty() {
            let look = Look {
                by: &wanted.every,
                ..look
            };
            for tags in others(wanted, &known, &tags, &digests) {
                let meaning = self.meaning(look, tags, &digests).await?;
                tally.add(self.look_at(look, meaning).await?);
                tally.answer(repository, &mut digests);
            }
        }
        tally.add(self.look_at(look, digests).await?);
        if !tally.failures.is_empty() {
            tally.unsure.extend(known.names());
        }
        Ok(tally)
    }

    /// Looks at some tags or digests.
    async fn look_at(&self, look: Look<'_>, candidates: BTreeSet<Exact>) -> Result<Tally, Trouble> {
        let looked = stream::iter(candidates)
            .map(|candidate| self.look(look, candidate))
            .buffer_unordered(AT_ONCE);
        let tally = looked.try_fold(Tally::default(), async |mut tally, one| {
            tally.add(one);
            Ok(tally)
        });
        tally.await
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
    async fn look(&self, look: Look<'_>, candidate: Exact) -> Result<Tally, Trouble> {
        let mut tally = Tally::default();
        let (wanted, known) = (look.wanted, look.known);
        let (client, repository) = (&self.access.client, &wanted.repository);
        let name = spelled(repository, &candidate);
        let tag = match &candidate {
            Exact::Tag(tag) => Some(tag.as_str()),
            Exact::Digest(_) => None,
        };
        // What cannot be asked for cannot be there.
        let Some(reference) = reference(repository, &candidate) else {
            tally.missing.insert(name);
            return Ok(tally);
        };
        if known.has(tag, reference.digest()) {
            let resolved = client.resolve(&reference).await;
            let Some(resolved) = self.unless_missing(&mut tally, &name, resolved).await? else {
                return Ok(tally.unless_failed(known, tag));
            };
            let digest = resolved.digest;
            if look.by.judge(tag, digest.as_str()).is_none() {
                return Ok(tally);
            }
            if let Some(images) = known.all(self.access, tag, &digest) {
                let purpose = self.purpose(wanted, tag, &digest, images.len());
                for image in images {
                    let (name, body) = (image.name(), purpose.relabelled(image));
                    self.apply(&mut tally, name, &body).await?;
                    tally.found(tag, image.digests());
                }
                return Ok(tally);
            }
        }
        let fetched = client.manifest(&reference).await;
        let Some(fetched) = self.unless_missing(&mut tally, &name, fetched).await? else {
            return Ok(tally.unless_failed(known, tag));
        };
        let digest = fetched.digest.clone();
        if look.by.judge(tag, digest.as_str()).is_none() {
            return Ok(tally);
        }
        tally.found(tag, [digest.as_str()].into_iter());
        let found = self.images(&mut tally, repository, tag, fetched).await?;
        // What could not be listed counts too: with it missing, a later job has to look again.
        let count = found.len().saturating_add(tally.failures.len());
        let purpose = self.purpose(wanted, tag, &digest, count);
        for image in &found {
            let name = image.name(&self.access.name, repository);
            let body = purpose.object(repository, &name, image);
            self.apply(&mut tally, &name, &body).await?;
            tally.found(tag, image.digests());
        }
        Ok(tally.unless_failed(known, tag))
    }

    fn purpose<'a>(
        &'a self,
        wanted: &'a Wanted,
        tag: Option<&'a str>,
        means: &'a Digest,
        count: usize,
    ) -> Purpose<'a> {
        Purpose {
            access: self.access,
            job: self.job,
            wanted,
            tag,
            means,
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
                tally.missing.insert(name.to_owned());
                Ok(None)
            }
            outcome => {
                let outcome = self.judge(tally, outcome).await?;
                if outcome.is_some() {
                    tally.present.insert(name.to_owned());
                }
                Ok(outcome)
            }
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

/// A tag or a digest as people write it, without the host.
pub(crate) fn spelled(repository: &Repository, candidate: &Exact) -> String {
    let repository = repository.name();
    match candidate {
        Exact::Tag(tag) => format!("{repository}:{tag}"),
        Exact::Digest(digest) => format!("{repository}@{digest}"),
    }
}

fn named(mut found: Vec<Found>, tag: Option<&str>, index: Option<&Digest>) -> Vec<Found> {
    for image in &mut found {
        image.tag = tag.map(str::to_owned);
        image.index = index.cloned();
    }
    found
}
