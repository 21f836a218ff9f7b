//! How a controller runs, and how it ends: what it has begun is finished, and nothing more is begun.
//! kube's own graceful end waits for the first list, which never comes once watching has stopped; so
//! a controller that is told to stop before it has seen anything is simply dropped.

use crate::work::Trouble;
use futures::{FutureExt, StreamExt};
use kube::api::DynamicObject;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After trouble.
const SOON: Duration = Duration::from_secs(5);

/// Reconciles until `stop`.
pub(crate) async fn run<C, R, F>(
    what: &'static str,
    controller: Controller<DynamicObject>,
    reconcile: R,
    context: Arc<C>,
    stop: CancellationToken,
) where
    C: Send + Sync + 'static,
    R: FnMut(Arc<DynamicObject>, Arc<C>) -> F,
    F: Future<Output = Result<Action, Trouble>> + Send + 'static,
{
    let known = controller.store();
    let reconciling = controller
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(reconcile, |_, _, _| Action::requeue(SOON), context)
        .for_each(async |outcome| {
            if let Err(error) = outcome {
                tracing::warn!(%error, "reconciling {what}");
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
