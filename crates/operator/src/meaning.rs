//! Which tags mean a digest. A job that names a digest alone has to come to what a job of the whole
//! Registry comes to, where the tag that means the digest answers for it: so the tags that the job
//! does not name are asked too, by HEAD as far as they are known.

use crate::known::Images;
use crate::listing::{AT_ONCE, Listing, Look};
use crate::wanted::Wanted;
use crate::work::Trouble;
use futures::{StreamExt, TryStreamExt, stream};
use muster_api::filter::Exact;
use muster_registry::{Error, Manifest};
use std::collections::BTreeSet;

impl Listing<'_> {
    /// Which of some tags mean one of the digests now. They are not what the job is about, so what
    /// cannot be asked is passed over.
    pub(crate) async fn meaning(
        &self,
        look: Look<'_>,
        tags: BTreeSet<String>,
        digests: &BTreeSet<Exact>,
    ) -> Result<BTreeSet<Exact>, Trouble> {
        if digests.is_empty() {
            return Ok(BTreeSet::new());
        }
        let asked = stream::iter(tags)
            .map(async |tag| {
                let means = self.means(look, &tag, digests).await?;
                Ok::<_, Trouble>(means.then_some(Exact::Tag(tag)))
            })
            .buffer_unordered(AT_ONCE);
        asked
            .try_filter_map(async |tag| Ok(tag))
            .try_collect()
            .await
    }

    async fn means(
        &self,
        look: Look<'_>,
        tag: &str,
        digests: &BTreeSet<Exact>,
    ) -> Result<bool, Trouble> {
        let known = |means| {
            let mut known = look.known.digests(tag, means).into_iter();
            known.any(|digest| is_among(digests, digest))
        };
        let Ok(reference) = look.wanted.repository.tagged(tag) else {
            return Ok(false);
        };
        let digest = match self.access.client.resolve(&reference).await {
            Ok(resolved) => resolved.digest,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) if error.is_transient() && !self.last => return Err(error.into()),
            // Where nobody can tell, it is what it was.
            Err(_) => return Ok(known(None)),
        };
        if look.known.has(Some(tag), Some(&digest)) {
            return Ok(known(Some(&digest)));
        }
        if is_among(digests, digest.as_str()) {
            return Ok(true);
        }
        match self.access.client.manifest(&reference).await {
            Ok(fetched) => Ok(match fetched.manifest {
                Manifest::Index(index) => index
                    .images()
                    .any(|entry| is_among(digests, entry.digest.as_str())),
                Manifest::Image(image) => is_among(digests, image.config.digest.as_str()),
            }),
            Err(error) if error.is_transient() && !self.last => Err(error.into()),
            Err(_) => Ok(false),
        }
    }
}

fn is_among(digests: &BTreeSet<Exact>, digest: &str) -> bool {
    digests.contains(&Exact::Digest(digest.to_owned()))
}

/// The tags that the Registry wants and the job does not name, which may mean a digest that it does
/// name: first those that did when they were last looked at, then all the others.
pub(crate) fn others(
    wanted: &Wanted,
    known: &Images,
    looked: &BTreeSet<Exact>,
    digests: &BTreeSet<Exact>,
) -> [BTreeSet<String>; 2] {
    let every = &wanted.every;
    let mut tags: BTreeSet<&str> = every.tags().collect();
    if every.candidates().listing {
        tags.extend(known.tags().filter(|tag| every.may_want(tag)));
    }
    let is_new = |tag: &&str| !looked.contains(&Exact::Tag((*tag).to_owned()));
    let meant = |tag: &str| {
        let mut known = known.digests(tag, None).into_iter();
        known.any(|digest| is_among(digests, digest))
    };
    let (likely, unlikely): (BTreeSet<String>, BTreeSet<String>) = tags
        .into_iter()
        .filter(is_new)
        .map(str::to_owned)
        .partition(|tag| meant(tag));
    [likely, unlikely]
}
