//! How a controller runs, and how it ends: what it has begun is finished, and nothing more is begun.
//! kube's own graceful end waits for the first list, which never comes once watching has stopped; so
//! a controller that is told to stop before it has seen anything is simply dropped. A reconcile that
//! panics is a failure of its object: other objects are reconciled as before.

use crate::events;
use crate::news::News;
use crate::object::Kind;
use crate::work::{OPERATOR, Operator, Trouble};
use futures::{FutureExt, StreamExt};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use muster_control::delay::backoff;
use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After trouble.
const SOON: Duration = Duration::from_secs(5);
/// The longest time until an object is reconciled again whose reconcile panics.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// The number of objects whose panics are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Reconciles until `stop`.
pub(crate) async fn run<C, R, F>(
    kind: Kind,
    controller: Controller<DynamicObject>,
    reconcile: R,
    context: Arc<C>,
    operator: Arc<Operator>,
    stop: CancellationToken,
) where
    C: Send + Sync + 'static,
    R: FnMut(Arc<DynamicObject>, Arc<C>) -> F,
    F: Future<Output = Result<Action, Trouble>> + Send + 'static,
{
    let panicked = Panicked::new(SOON);
    run_with(
        panicked, kind, controller, reconcile, context, operator, stop,
    )
    .await;
}

async fn run_with<C, R, F>(
    panicked: Panicked,
    kind: Kind,
    controller: Controller<DynamicObject>,
    mut reconcile: R,
    context: Arc<C>,
    operator: Arc<Operator>,
    stop: CancellationToken,
) where
    C: Send + Sync + 'static,
    R: FnMut(Arc<DynamicObject>, Arc<C>) -> F,
    F: Future<Output = Result<Action, Trouble>> + Send + 'static,
{
    let known = controller.store();
    let panicked = Arc::new(panicked);
    let remembered = panicked.clone();
    let guarded = move |object: Arc<DynamicObject>, context| {
        let work = reconcile(object.clone(), context);
        let (operator, remembered) = (operator.clone(), remembered.clone());
        async move { guard(&operator, kind, &object, &remembered, work).await }
    };
    let reconciling = controller
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(
            guarded,
            move |object, trouble, _| Action::requeue(panicked.retry_after(&object, trouble)),
            context,
        )
        .for_each(async |outcome| {
            if let Err(error) = outcome {
                tracing::warn!(%error, "reconciling {}", kind.kind);
            }
        });
    let unseen = async {
        tokio::select! {
            biased;
            Ok(()) = known.wait_until_ready() => pending().await,
            () = stop.cancelled() => {}
        }
    };
    tokio::select! {
        () = reconciling.fuse() => {}
        () = unseen => {}
    }
}

/// Reconciles one object. A panic becomes an error and an Event of the object.
async fn guard(
    operator: &Operator,
    kind: Kind,
    object: &DynamicObject,
    panicked: &Panicked,
    work: impl Future<Output = Result<Action, Trouble>>,
) -> Result<Action, Trouble> {
    let done = operator.catch(OPERATOR, kind.kind, work).await;
    match &done {
        Err(trouble @ Trouble::Panicked(_)) => {
            let failures = panicked.add(object);
            // The same again is counted, and not written to the API server each time.
            if failures == 1 {
                let news = News::bad("InternalError", trouble.to_string());
                events::tell(operator, kind, &object.metadata, &news).await;
            }
        }
        _ => panicked.forget(object),
    }
    done
}

/// Objects whose reconcile panicked.
struct Panicked {
    /// How often in a row, by UID.
    counts: Mutex<HashMap<String, u32>>,
    /// The time until an object is reconciled again after its first panic.
    first: Duration,
}

impl Panicked {
    fn new(first: Duration) -> Panicked {
        Panicked {
            counts: Mutex::default(),
            first,
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, object: &DynamicObject) -> u32 {
        let mut counts = self.counts();
        if counts.len() >= MAX_REMEMBERED {
            // Objects that were deleted are among them. The others wait less next time.
            counts.clear();
        }
        let count = counts.entry(object.uid().unwrap_or_default()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn forget(&self, object: &DynamicObject) {
        let mut counts = self.counts();
        if !counts.is_empty() {
            counts.remove(&object.uid().unwrap_or_default());
        }
    }

    /// The time until an object is reconciled again.
    fn retry_after(&self, object: &DynamicObject, trouble: &Trouble) -> Duration {
        if !matches!(trouble, Trouble::Panicked(_)) {
            return SOON;
        }
        let count = self
            .counts()
            .get(&object.uid().unwrap_or_default())
            .copied();
        backoff(count.unwrap_or(1), self.first, MAX_RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests;
