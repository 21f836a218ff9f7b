//! Who still needs a Registry, and what follows for its finalizer ([`bond`]): one that is to go is
//! let go when nobody works on it, one that is to stay is tied only while it has a job. Claims that
//! count no longer are taken away on the way, so that none outlives its Registry.

use super::bond::{self, Knot, Need};
use super::plan::Plan;
use super::run::Run;
use crate::lease::{self, Place};
use crate::work::{Operator, Trouble};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use std::time::Duration;

/// While somebody is waited for.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// Lets a Registry go that nobody works on.
pub(super) async fn let_go(object: &DynamicObject, operator: &Operator) -> Result<Action, Trouble> {
    if !bond::is_tied(&object.metadata) {
        return Ok(Action::await_change());
    }
    if let Some(holder) = holder(operator, object).await? {
        tracing::debug!(name = object.name_any(), %holder, "a Registry waits to be deleted");
        return Ok(Action::requeue(SOON));
    }
    bond::untie(operator.client(), &object.metadata).await?;
    Ok(Action::await_change())
}

/// Who needs a Registry that is there to stay, by its jobs and by what is about to be started on it.
///
/// It is asked after the Registry was read, so a job that is not seen came later: it ties the
/// Registry, and what was read is of no use for untying it; or finds it tied still, looks once more
/// when it has its claim, and should even that be too early, our own change has us look again.
pub(super) async fn need(
    operator: &Operator,
    object: &DynamicObject,
    runs: &[Run],
    plan: &Plan,
) -> Result<Need, Trouble> {
    if runs.iter().any(|run| run.outcome.is_none()) {
        return Ok(Need::Job);
    }
    if plan.start.is_some() {
        return Ok(Need::Coming);
    }
    Ok(match holder(operator, object).await? {
        Some(_) => Need::Coming,
        None => Need::Nobody,
    })
}

/// Ties or unties a Registry that is there to stay; says whether it had to be written.
pub(super) async fn settle(
    operator: &Operator,
    object: &DynamicObject,
    need: Need,
) -> Result<bool, Trouble> {
    let (client, metadata) = (operator.client(), &object.metadata);
    match bond::knot(bond::is_tied(metadata), need) {
        Knot::Tie => bond::tie(client, metadata).await?,
        Knot::Untie => bond::untie(client, metadata).await?,
        Knot::Leave => return Ok(false),
    }
    Ok(true)
}

/// Who works on a Registry, or has announced himself.
async fn holder(
    operator: &Operator,
    object: &DynamicObject,
) -> Result<Option<lease::Holder>, Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let name = object.name_any();
    let place = Place {
        namespace: &namespace,
        registry: &name,
    };
    lease::clear(operator.client(), operator.installation(), place).await
}
