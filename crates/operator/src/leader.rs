//! Who leads: of many operators, one reconciles. The leader holds a Lease and renews it; who cannot
//! renew it in time stops working before anybody else begins. Whether a Lease has lapsed is judged
//! by how long it has stayed the same before one's own eyes, so clocks need not agree.

use crate::object::{MANAGER, lease_resource};
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The Lease of the leader among operators, in the installation namespace.
const NAME: &str = "muster-operator";
/// The longest duration that is read from a Lease.
const MAX_SECONDS: u64 = 3600;

/// A candidate.
#[derive(Clone)]
pub struct Election {
    leases: Api<DynamicObject>,
    name: String,
    identity: String,
    terms: Terms,
}

/// How long things last. A leader that has not renewed for `deadline` gives up, which must be well
/// before the Lease lapses after `duration`.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long a Lease is respected without being renewed; whole seconds.
    pub duration: Duration,
    /// How long the leader works without having renewed.
    pub deadline: Duration,
    /// How often it is renewed, or tried for.
    pub retry: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A Lease as it was last seen to change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    revision: String,
    holder: String,
    duration: Duration,
    at: Instant,
}

/// Whether a candidate may take, or keep, a Lease that it looks at.
fn may_lead(seen: Option<&Seen>, identity: &str, now: Instant) -> bool {
    seen.is_none_or(|seen| {
        let free = seen.holder.is_empty() || seen.holder == identity;
        free || now.saturating_duration_since(seen.at) >= seen.duration
    })
}

/// What a look at a Lease adds to what was seen: only a change counts.
fn look(before: Option<Seen>, lease: Option<&DynamicObject>, now: Instant) -> Option<Seen> {
    let lease = lease?;
    let revision = lease.resource_version().unwrap_or_default();
    if let Some(before) = before.filter(|before| before.revision == revision) {
        return Some(before);
    }
    let spec = &lease.data["spec"];
    let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
    Some(Seen {
        revision,
        holder: spec["holderIdentity"].as_str().unwrap_or_default().into(),
        duration: Duration::from_secs(seconds.min(MAX_SECONDS)),
        at: now,
    })
}

impl Election {
    /// A candidate called `identity`, which must be its own, for the Lease in a namespace.
    pub fn new(client: &Client, installation: &str, identity: &str, terms: Terms) -> Self {
        Election {
            leases: Api::namespaced_with(client.clone(), installation, &lease_resource()),
            name: NAME.into(),
            identity: identity.to_owned(),
            terms,
        }
    }

    /// The same candidate for another duty, whose Lease has this name.
    pub fn for_duty(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Works whenever this candidate leads, until `stop`. The token given to `work` ends with the
    /// term; a new term begins only after the work of the last has ended.
    pub async fn run<F: Future<Output = ()>>(
        &self,
        work: impl Fn(CancellationToken) -> F,
        stop: CancellationToken,
    ) {
        let mut seen = None;
        while !stop.is_cancelled() {
            let begun = Instant::now();
            if self.attempt(&mut seen).await {
                tracing::info!(identity = self.identity, duty = self.name, "leading");
                let term = stop.child_token();
                let renewing = self.renew(&mut seen, begun, &term);
                tokio::join!(work(term.clone()), renewing);
                tracing::info!(
                    identity = self.identity,
                    duty = self.name,
                    "leading no more"
                );
                if stop.is_cancelled() {
                    self.resign(seen).await;
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(self.terms.retry) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Renews until the term ends, and ends it when renewing does not succeed in time.
    async fn renew(&self, seen: &mut Option<Seen>, begun: Instant, term: &CancellationToken) {
        let mut renewed = begun;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.terms.retry) => {}
                () = term.cancelled() => return,
            }
            let begun = Instant::now();
            let left = self.terms.deadline.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.attempt(seen)).await {
                Ok(true) => renewed = begun,
                // Somebody else leads: there is nothing to wait for.
                Ok(false) if self.is_anothers(seen.as_ref()) => break,
                Ok(false) if renewed.elapsed() < self.terms.deadline => {}
                _ => break,
            }
        }
        term.cancel();
    }

    fn is_anothers(&self, seen: Option<&Seen>) -> bool {
        seen.is_some_and(|seen| !seen.holder.is_empty() && seen.holder != self.identity)
    }

    /// Takes or renews the Lease, if it may; says whether it did.
    async fn attempt(&self, seen: &mut Option<Seen>) -> bool {
        let known = match self.leases.get_opt(&self.name).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "asking who leads");
                return false;
            }
        };
        *seen = look(seen.take(), known.as_ref(), Instant::now());
        if !may_lead(seen.as_ref(), &self.identity, Instant::now()) {
            return false;
        }
        let lease = self.lease(known.as_ref(), &self.identity);
        match self.write(known.is_some(), &lease).await {
            Ok(written) => {
                *seen = look(None, Some(&written), Instant::now());
                true
            }
            // Another was faster.
            Err(kube::Error::Api(refused)) if refused.code == 409 => false,
            Err(error) => {
                tracing::warn!(%error, "asking to lead");
                false
            }
        }
    }

    /// Lets another begin at once.
    async fn resign(&self, seen: Option<Seen>) {
        let Ok(Some(known)) = self.leases.get_opt(&self.name).await else {
            return;
        };
        if look(seen, Some(&known), Instant::now()).is_some_and(|seen| seen.holder == self.identity)
            && let Err(error) = self.write(true, &self.lease(Some(&known), "")).await
        {
            tracing::debug!(%error, "resigning");
        }
    }

    async fn write(&self, exists: bool, lease: &DynamicObject) -> kube::Result<DynamicObject> {
        let parameters = PostParams {
            field_manager: Some(MANAGER.into()),
            ..PostParams::default()
        };
        match exists {
            true => self.leases.replace(&self.name, &parameters, lease).await,
            false => self.leases.create(&parameters, lease).await,
        }
    }

    fn lease(&self, known: Option<&DynamicObject>, holder: &str) -> DynamicObject {
        let now = jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            .to_string();
        let before = known.map(|lease| &lease.data["spec"]);
        let same = before.is_some_and(|spec| spec["holderIdentity"] == holder);
        let count = before
            .and_then(|spec| spec["leaseTransitions"].as_i64())
            .unwrap_or_default();
        let acquired = before
            .filter(|_| same)
            .and_then(|spec| spec["acquireTime"].as_str());
        let mut lease = DynamicObject::new(&self.name, &lease_resource());
        lease.metadata.resource_version = known.and_then(ResourceExt::resource_version);
        lease.data = json!({"spec": {
            "holderIdentity": holder, "acquireTime": acquired.unwrap_or(&now), "renewTime": now,
            "leaseDurationSeconds": self.terms.duration.as_secs().max(1),
            "leaseTransitions": if same { count } else { count.saturating_add(1) },
        }});
        lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_anybodys_once_it_has_stayed_the_same_for_its_duration() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let lease = |revision: &str, holder: &str| {
            let mut lease = DynamicObject::new(NAME, &lease_resource());
            lease.metadata.resource_version = Some(revision.into());
            lease.data = json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
            lease
        };
        assert!(may_lead(None, "me", start), "there is none");
        let seen = look(None, Some(&lease("1", "other")), start);
        assert!(!may_lead(seen.as_ref(), "me", later(14)), "it is fresh");
        let seen = look(seen, Some(&lease("2", "other")), later(14));
        assert!(!may_lead(seen.as_ref(), "me", later(28)), "it was renewed");
        let seen = look(seen, Some(&lease("2", "other")), later(28));
        assert!(
            may_lead(seen.as_ref(), "me", later(29)),
            "it was not renewed again"
        );
        let seen = look(seen, Some(&lease("3", "me")), later(29));
        assert!(may_lead(seen.as_ref(), "me", later(29)), "it is mine");
        assert!(
            !may_lead(seen.as_ref(), "other", later(29)),
            "it is not the other's"
        );
        let seen = look(seen, Some(&lease("4", "")), later(30));
        assert!(
            may_lead(seen.as_ref(), "other", later(30)),
            "the leader resigned"
        );
        assert_eq!(look(seen, None, later(31)), None);
    }
}
