//! The first stage: which images there are. Every platform of every wanted tag becomes an Image,
//! owned by its Registry. How many there are is written down last, when all of them exist. Images
//! that are there no longer are deleted by jobs that looked at the whole Registry, and never where
//! looking failed.

use crate::access::{self, Access};
use crate::listing::Listing;
use crate::message::{Job, JobKind};
use crate::news::News;
use crate::object::{IMAGE, REGISTRY, is_absent};
use crate::tally::Tally;
use crate::wanted::{Target, Wanted, wanted};
use crate::work::{Operator, Trouble};
use crate::{events, missing, progress};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, ListParams, ObjectMeta};
use muster_registry::Error;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How many repositories are looked through at once.
const AT_ONCE: usize = 4;
/// How often it is seen to that the job is still wanted.
const GLANCE: Duration = Duration::from_secs(5);

/// Creates the Images of a job. On the `last` try, what might get better counts as failed.
pub(crate) async fn create(operator: &Operator, job: &Job, last: bool) -> Result<(), Trouble> {
    let Some(object) = progress::live(operator, job).await? else {
        return Ok(());
    };
    let registry = object.data["spec"]["registry"].as_str().unwrap_or_default();
    tracing::Span::current().record("registry", registry);
    let Some(access) = access::open(operator, &job.namespace, registry).await? else {
        // The reconciler sees that too, and says so.
        return Ok(());
    };
    let targets: Option<Vec<Target>> =
        Deserialize::deserialize(&object.data["spec"]["repositories"])
            .map_err(Trouble::permanent)?;
    let targets = targets.unwrap_or_default();
    progress::begin(operator, job).await?;
    let listing = Listing {
        operator,
        access: &access,
        job,
        last,
    };
    let listed = list(&listing, &targets);
    let Some(tally) = while_wanted(operator, job, listed).await? else {
        return Ok(());
    };
    if job.kind == JobKind::ScanJob && targets.is_empty() {
        let kept = tally.made.union(&tally.unsure).cloned().collect();
        let gone = forget(operator, &job.namespace, registry, &kept).await?;
        if gone > 0 {
            let about = ObjectMeta {
                name: Some(registry.to_owned()),
                namespace: Some(job.namespace.clone()),
                uid: Some(access.uid.clone()),
                ..ObjectMeta::default()
            };
            let message = format!("Removed {gone} images that are there no longer");
            let news = News::good("ObsoleteImagesRemoved", message);
            events::tell(operator, REGISTRY, &about, &news).await;
        }
    }
    missing::tell(operator, job, &access, &tally).await?;
    missing::keep(operator, job, &access, &tally, targets.is_empty()).await?;
    progress::listed(operator, job, tally.made.len(), tally.failures).await
}

/// Lists all that a job is about.
async fn list(listing: &Listing<'_>, targets: &[Target]) -> Result<Tally, Trouble> {
    let mut tally = Tally::default();
    let mut repositories = Vec::new();
    match wanted(listing.access, targets) {
        None => repositories = catalog(listing.access).await?,
        Some(wanted) => {
            for one in wanted {
                match one {
                    Ok(one) => repositories.push(one),
                    Err(trouble) => tally.failures.push(trouble.to_string()),
                }
            }
        }
    }
    if !tally.failures.is_empty() {
        // Nobody can tell which Images are of what could not be looked for.
        let (namespace, registry) = (&listing.job.namespace, &listing.access.name);
        let known = images(listing.operator, namespace, registry).await?;
        tally.unsure.extend(known);
    }
    let listed = stream::iter(repositories.into_iter().map(Arc::new))
        .map(async |wanted| listing.repository(&wanted).await)
        .buffer_unordered(AT_ONCE);
    let tally = listed.try_fold(tally, async |mut tally, one| {
        tally.add(one);
        Ok(tally)
    });
    tally.await
}

/// Does work until its job has ended or is gone; then none.
async fn while_wanted<T>(
    operator: &Operator,
    job: &Job,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<Option<T>, Trouble> {
    let mut work = pin!(work);
    loop {
        match tokio::time::timeout(GLANCE, &mut work).await {
            Ok(done) => return done.map(Some),
            Err(_) if progress::live(operator, job).await?.is_none() => return Ok(None),
            Err(_) => {}
        }
    }
}

/// Everything that a registry says it has.
async fn catalog(access: &Access) -> Result<Vec<Wanted>, Trouble> {
    if access.spec.catalog_type == "NoCatalog" {
        let why = "the Registry has no catalog and lists no repositories";
        return Err(Trouble::permanent(why));
    }
    let error = match access.client.catalog(&access.host).await {
        Ok(found) => return Ok(found.into_iter().map(Wanted::whole).collect()),
        Err(error) => access.explain(error).await?,
    };
    match error {
        Error::NotFound { .. }
        | Error::Unsupported { .. }
        | Error::Unauthorized { .. }
        | Error::Denied { .. }
        | Error::Malformed { .. } => Err(Trouble::permanent(format!(
            "the registry {} does not list its repositories; set spec.catalogType to NoCatalog and name them in spec.repositories: {error}",
            access.host
        ))),
        error => Err(error.into()),
    }
}

/// Deletes the Images of a Registry that are there no longer, or mean something else by now; says
/// how many.
async fn forget(
    operator: &Operator,
    namespace: &str,
    registry: &str,
    kept: &BTreeSet<String>,
) -> Result<usize, Trouble> {
    let mut gone = 0;
    let client = operator.client();
    let known = images(operator, namespace, registry).await?;
    for name in known.difference(kept) {
        let api = IMAGE.within(client, namespace);
        match api.delete(name, &DeleteParams::background()).await {
            Err(error) if !is_absent(&error) => return Err(error.into()),
            _ => gone += 1,
        }
    }
    Ok(gone)
}

/// The names of all Images of a Registry.
async fn images(
    operator: &Operator,
    namespace: &str,
    registry: &str,
) -> Result<BTreeSet<String>, Trouble> {
    let selected = ListParams::default().fields(&format!("imageMetadata.registry={registry}"));
    let client = operator.client();
    let found = IMAGE.metadata(client, namespace, selected).await?;
    Ok(found.into_iter().filter_map(|image| image.name).collect())
}
