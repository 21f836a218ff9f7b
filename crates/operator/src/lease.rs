//! Who may work on a Registry: one job at a time, whatever its kind. The claim is a Lease in the
//! installation namespace, written by compare-and-swap. It is worth what its holder is worth: the
//! holder's object is looked up, and once that is gone or has ended the claim is anybody's. Only a
//! claim made for an object that is just being created goes by the clock, because nothing can be
//! looked up yet; it is told by its duration, and ends when the object takes it over.

mod name;

use crate::message::{Job, JobKind};
use crate::object::{MANAGER, REGISTRY, is_absent, lease_resource};
use crate::registry::bond;
use crate::work::Trouble;
use crate::{discovery, job};
use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// The namespace and the name of the Registry that a Lease is about.
const ABOUT: &str = "sbomscanner.kubewarden.io/registry";
/// How long a claim lasts that was made before its object exists.
const PENDING: SignedDuration = SignedDuration::from_secs(10);
/// The longest duration that is read from a Lease.
const MAX_SECONDS: i64 = 3600;
/// How often a write is tried that others come in between of.
const ATTEMPTS: usize = 5;

/// The Registry a claim is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) registry: &'a str,
}

/// Who holds a claim: a job. Before its object exists, its UID may be unknown: empty.
pub(crate) type Holder = Job;

fn identity(holder: &Holder) -> String {
    let kind = holder.kind.object().kind;
    format!("{kind}/{}/{}/{}", holder.namespace, holder.name, holder.uid)
}

fn parse(identity: &str) -> Option<Holder> {
    let mut parts = identity.splitn(4, '/').map(str::to_owned);
    let kind = parts.next()?;
    let kinds = [JobKind::ScanJob, JobKind::RegistryDiscovery];
    Some(Holder {
        kind: kinds
            .into_iter()
            .find(|known| known.object().kind == kind)?,
        namespace: parts.next()?,
        name: parts.next()?,
        uid: parts.next()?,
    })
}

/// Whether somebody may work on a Registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Yes, and nobody else, until it is released or its object is gone or has ended.
    Acquired,
    /// Not now: somebody else does.
    HeldBy(Holder),
    /// Never again: the Registry is being deleted.
    Closing,
    /// There is no such Registry.
    Absent,
}

/// A claim as the Lease tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    holder: Holder,
    /// Made before the holder's object; without it, until then.
    until: Option<Timestamp>,
}

/// What has become of a holder's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It is not there, or another of the same name.
    Absent,
    Running,
    Ended,
}

/// For whom a Registry is claimed.
#[derive(Clone, Copy, Debug)]
enum Stand {
    /// For an object that is there, since when.
    There { since: Option<Timestamp> },
    /// For one that is about to be created.
    Coming,
}

/// What is to be done about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is one's own already.
    Keep,
    /// It is free, or one's own but pending.
    Take,
    /// It is somebody else's.
    Wait,
}

/// Whether a claim still keeps others away; `life` is that of its holder.
///
/// One for an object that is still to come keeps nobody away who was there before it: `since`, if it
/// is known. So whoever only announces himself, again and again, holds up nobody.
fn counts(claim: &Claim, life: Life, since: Option<Timestamp>, now: Timestamp) -> bool {
    match (life, claim.until) {
        (Life::Running, _) => true,
        (Life::Ended, _) | (Life::Absent, None) => false,
        (Life::Absent, Some(until)) => {
            let made = until.saturating_sub(PENDING).unwrap_or(until);
            now < until && since.is_none_or(|since| made <= since)
        }
    }
}

/// Decides whose a claim is.
fn decide(
    claim: Option<&Claim>,
    me: &Holder,
    life: Life,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Verdict {
    let Some(claim) = claim else {
        return Verdict::Take;
    };
    let (theirs, pending) = (&claim.holder, claim.until.is_some());
    let namesake =
        (theirs.kind, &theirs.namespace, &theirs.name) == (me.kind, &me.namespace, &me.name);
    let unknown = theirs.uid.is_empty() || me.uid.is_empty();
    match namesake && (theirs.uid == me.uid || pending && unknown) {
        true if pending => Verdict::Take,
        true => Verdict::Keep,
        false if counts(claim, life, since, now) => Verdict::Wait,
        false => Verdict::Take,
    }
}

/// Takes a Registry for an object that exists, since when it says.
pub(crate) async fn acquire(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
    object: &DynamicObject,
) -> Result<Outcome, Trouble> {
    let since = object.creation_timestamp().map(|time| time.0);
    take(client, installation, place, me, Stand::There { since }).await
}

/// Takes a Registry for an object that is about to be created, for a few seconds: the object
/// acquires it, or the claim lapses.
pub(crate) async fn reserve(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
) -> Result<Outcome, Trouble> {
    take(client, installation, place, me, Stand::Coming).await
}

/// What claiming a Registry would come to now; nothing is claimed.
pub(crate) async fn look(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
) -> Result<Outcome, Trouble> {
    if !is_name(place.registry) {
        return Ok(Outcome::Absent);
    }
    if let Err(refused) = open(client, place).await? {
        return Ok(refused);
    }
    let lease = leases(client, installation)
        .get_opt(&name::of(place))
        .await?;
    let Some(claim) = lease.as_ref().and_then(read) else {
        return Ok(Outcome::Acquired);
    };
    let life = life(client, &claim.holder).await?;
    Ok(
        match decide(Some(&claim), me, life, None, Timestamp::now()) {
            Verdict::Wait => Outcome::HeldBy(claim.holder),
            Verdict::Keep | Verdict::Take => Outcome::Acquired,
        },
    )
}

/// Who works on a Registry, or has announced himself; none if it is free. A claim that counts no
/// longer is taken away: with its Registry gone, nobody would look for it.
pub(crate) async fn clear(
    client: &Client,
    installation: &str,
    place: Place<'_>,
) -> Result<Option<Holder>, Trouble> {
    let api = leases(client, installation);
    let Some(lease) = api.get_opt(&name::of(place)).await? else {
        return Ok(None);
    };
    if let Some(claim) = read(&lease) {
        let life = life(client, &claim.holder).await?;
        if counts(&claim, life, None, Timestamp::now()) {
            return Ok(Some(claim.holder));
        }
    }
    delete(&api, &lease).await?;
    Ok(None)
}

/// Gives a Registry back, if it is held.
pub(crate) async fn release(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
) -> Result<(), Trouble> {
    let api = leases(client, installation);
    let Some(lease) = api.get_opt(&name::of(place)).await? else {
        return Ok(());
    };
    match read(&lease) {
        Some(claim) if claim.holder == *me => delete(&api, &lease).await,
        _ => Ok(()),
    }
}

/// Deletes a Lease as it was read.
async fn delete(api: &Api<DynamicObject>, lease: &DynamicObject) -> Result<(), Trouble> {
    let exactly = DeleteParams {
        preconditions: Some(Preconditions {
            resource_version: lease.resource_version(),
            uid: lease.uid(),
        }),
        ..DeleteParams::default()
    };
    match api.delete(&lease.name_any(), &exactly).await {
        Err(error) if !is_absent(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

async fn take(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
    stand: Stand,
) -> Result<Outcome, Trouble> {
    let mut attempt = 1;
    loop {
        match swap(client, installation, place, me, stand).await {
            Err(trouble) if is_stale(&trouble) && attempt < ATTEMPTS => attempt += 1,
            other => return other,
        }
    }
}

/// Looks at the claim and takes it if it is free, unless somebody writes it meanwhile.
async fn swap(
    client: &Client,
    installation: &str,
    place: Place<'_>,
    me: &Holder,
    stand: Stand,
) -> Result<Outcome, Trouble> {
    if !is_name(place.registry) {
        return Ok(Outcome::Absent);
    }
    let api = leases(client, installation);
    let known = api.get_opt(&name::of(place)).await?;
    let claim = known.as_ref().and_then(read);
    let life = match &claim {
        Some(claim) => life(client, &claim.holder).await?,
        None => Life::Absent,
    };
    let now = Timestamp::now();
    let (since, lasts) = match stand {
        Stand::There { since } => (since, None),
        Stand::Coming => (None, Some(PENDING)),
    };
    match (decide(claim.as_ref(), me, life, since, now), claim) {
        (Verdict::Keep, _) => return Ok(Outcome::Acquired),
        (Verdict::Wait, Some(claim)) => return Ok(Outcome::HeldBy(claim.holder)),
        _ => {}
    }
    if let Err(refused) = hold(client, place, stand).await? {
        return Ok(refused);
    }
    let lease = written(place, me, lasts, known.as_ref(), now);
    let parameters = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    match known {
        None => api.create(&parameters, &lease).await?,
        Some(_) => api.replace(&lease.name_any(), &parameters, &lease).await?,
    };
    // Once more: whoever lets a Registry go looks at the claim after it was told to, so one of the
    // two sees the other; and whoever saw no job a moment ago may have untied it since.
    let Err(refused) = hold(client, place, stand).await? else {
        return Ok(Outcome::Acquired);
    };
    release(client, installation, place, me).await?;
    Ok(refused)
}

/// Whether what was looked at has been written, or is gone, since.
fn is_stale(trouble: &Trouble) -> bool {
    let gone = matches!(trouble, Trouble::Api(error) if is_absent(error));
    gone || trouble.is_conflict()
}

/// Keeps a Registry from going, for whoever may begin to work on it; else says why nobody may.
async fn hold(
    client: &Client,
    place: Place<'_>,
    stand: Stand,
) -> Result<Result<(), Outcome>, Trouble> {
    let mut attempt = 1;
    loop {
        let found = match (open(client, place).await?, stand) {
            (Err(refused), _) => return Ok(Err(refused)),
            // Whoever only announces himself writes to nobody else's objects.
            (Ok(_), Stand::Coming) => return Ok(Ok(())),
            (Ok(found), Stand::There { .. }) if bond::is_tied(&found) => return Ok(Ok(())),
            (Ok(found), Stand::There { .. }) => found,
        };
        match bond::tie(client, &found).await.map_err(Trouble::from) {
            Err(trouble) if is_stale(&trouble) && attempt < ATTEMPTS => attempt += 1,
            tied => return tied.map(Ok),
        }
    }
}

/// A Registry that somebody may begin to work on; else why nobody may.
async fn open(client: &Client, place: Place<'_>) -> Result<Result<ObjectMeta, Outcome>, Trouble> {
    let registries = REGISTRY.within(client, place.namespace);
    let found = registries.get_metadata_opt(place.registry).await?;
    Ok(match found.map(|found| found.metadata) {
        None => Err(Outcome::Absent),
        Some(found) if found.deletion_timestamp.is_some() => Err(Outcome::Closing),
        Some(found) => Ok(found),
    })
}

/// Whether there can be a Registry of that name at all. Jobs are asked for one when they are created;
/// those from before were not, and a name goes into paths as it is.
pub(crate) fn is_name(registry: &str) -> bool {
    muster_kind::name::subdomain(registry).is_empty()
}

fn leases(client: &Client, installation: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), installation, &lease_resource())
}

/// What a Lease says; none if nobody holds it, or nobody we know of.
fn read(lease: &DynamicObject) -> Option<Claim> {
    let spec = &lease.data["spec"];
    let holder = parse(spec["holderIdentity"].as_str()?)?;
    let until = spec["leaseDurationSeconds"].as_i64().map(|seconds| {
        let seconds = seconds.clamp(0, MAX_SECONDS);
        let since = spec["renewTime"]
            .as_str()
            .and_then(|time| time.parse().ok());
        let since = since.unwrap_or(Timestamp::MIN);
        since
            .saturating_add(SignedDuration::from_secs(seconds))
            .unwrap_or(since)
    });
    Some(Claim { holder, until })
}

/// The Lease with a claim in it, at the revision that was looked at.
fn written(
    place: Place<'_>,
    me: &Holder,
    lasts: Option<SignedDuration>,
    known: Option<&DynamicObject>,
    now: Timestamp,
) -> DynamicObject {
    let now = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let before = known.and_then(|lease| lease.data["spec"]["leaseTransitions"].as_i64());
    let mut spec = json!({
        "holderIdentity": identity(me), "acquireTime": now, "renewTime": now,
        "leaseTransitions": before.map_or(0, |count| count.saturating_add(1)),
    });
    if let Some(lasts) = lasts {
        spec["leaseDurationSeconds"] = json!(lasts.as_secs());
    }
    let mut lease = DynamicObject::new(&name::of(place), &lease_resource());
    lease.metadata.resource_version = known.and_then(ResourceExt::resource_version);
    let about = format!("{}/{}", place.namespace, place.registry);
    lease.annotations_mut().insert(ABOUT.into(), about);
    lease.data = json!({ "spec": spec });
    lease
}

/// Looks at a holder's object.
async fn life(client: &Client, holder: &Holder) -> Result<Life, Trouble> {
    let done: fn(&Value) -> bool = match holder.kind {
        JobKind::ScanJob => job::has_ended,
        JobKind::RegistryDiscovery => discovery::has_ended,
    };
    let api = holder.kind.object().within(client, &holder.namespace);
    let Some(object) = api.get_opt(&holder.name).await? else {
        return Ok(Life::Absent);
    };
    let other = !holder.uid.is_empty() && object.uid().as_ref() != Some(&holder.uid);
    let leaving = object.metadata.deletion_timestamp.is_some();
    Ok(match other {
        true => Life::Absent,
        false if leaving || done(&object.data["status"]) => Life::Ended,
        false => Life::Running,
    })
}

#[cfg(test)]
mod tests;
