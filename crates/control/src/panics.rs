//! Panics, kept within the object or the loop in which they happen. Every controller runs the work on one
//! object through [`Panics::catch`], and its loops through [`Panics::restart`], so that no object of a user
//! ends the process.

use crate::delay::backoff;
use futures::FutureExt;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The pause before a loop runs again, and the longest one.
const RESTART_AFTER: Duration = Duration::from_secs(1);
const MAX_RESTART_AFTER: Duration = Duration::from_secs(60);
/// How many characters of a panic's message are reported.
const MAX_MESSAGE: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    component: &'static str,
    controller: &'static str,
}

/// The panics of a process, counted by component and controller. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Panics {
    caught: Family<Labels, Counter>,
}

/// A panic that was caught. The message is that of the panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error: {message}; please report this defect of Muster")]
pub struct Panicked {
    message: String,
}

impl Panics {
    /// Registers the counter.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("panics", "Panics that were caught", self.caught.clone());
    }

    /// Runs work on one object to its end. A panic is counted, logged and returned as an error.
    pub async fn catch<F: Future>(
        &self,
        component: &'static str,
        controller: &'static str,
        work: F,
    ) -> Result<F::Output, Panicked> {
        let done = AssertUnwindSafe(work).catch_unwind().await;
        done.map_err(|panic| self.record(component, controller, &*panic))
    }

    /// Counts and logs a panic that was caught elsewhere, such as by a task.
    pub fn record(
        &self,
        component: &'static str,
        controller: &'static str,
        panic: &(dyn Any + Send),
    ) -> Panicked {
        let labels = Labels {
            component,
            controller,
        };
        self.caught.get_or_create(&labels).inc();
        let message: String = text(panic).chars().take(MAX_MESSAGE).collect();
        tracing::error!(component, controller, panic = message, "caught a panic");
        Panicked { message }
    }

    /// Runs a loop until it ends. A loop that panics runs again after a pause, which grows.
    pub async fn restart<F: Future<Output = ()>>(
        &self,
        component: &'static str,
        controller: &'static str,
        run: impl FnMut() -> F,
        stop: &CancellationToken,
    ) {
        self.restart_after(RESTART_AFTER, component, controller, run, stop)
            .await;
    }

    async fn restart_after<F: Future<Output = ()>>(
        &self,
        first: Duration,
        component: &'static str,
        controller: &'static str,
        mut run: impl FnMut() -> F,
        stop: &CancellationToken,
    ) {
        let mut failures: u32 = 0;
        loop {
            let begun = Instant::now();
            if self.catch(component, controller, run()).await.is_ok() {
                return;
            }
            failures = match begun.elapsed() > MAX_RESTART_AFTER {
                true => 1,
                false => failures.saturating_add(1),
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(backoff(failures, first, MAX_RESTART_AFTER)) => {}
            }
        }
    }

    /// The number of panics of a controller.
    pub fn count(&self, component: &'static str, controller: &'static str) -> u64 {
        let labels = Labels {
            component,
            controller,
        };
        self.caught.get(&labels).map_or(0, |counter| counter.get())
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[tokio::test]
    async fn a_panic_is_an_error_and_is_counted() {
        let panics = Panics::default();
        let number = 3;
        let done = panics.catch("operator", "ScanJob", async { number }).await;
        assert_eq!(done, Ok(3));
        let done = panics
            .catch("operator", "ScanJob", async {
                tokio::task::yield_now().await;
                assert_eq!(number, 4, "on purpose");
            })
            .await;
        assert!(done.unwrap_err().to_string().contains("on purpose"));
        assert_eq!(panics.count("operator", "ScanJob"), 1);
        assert_eq!(panics.count("operator", "Registry"), 0);
        let mut registry = Registry::with_prefix("muster");
        panics.register(&mut registry);
        let mut told = String::new();
        encode(&mut told, &registry).unwrap();
        let line = r#"muster_panics_total{component="operator",controller="ScanJob"} 1"#;
        assert!(told.contains(line), "{told}");
    }

    #[tokio::test]
    async fn a_loop_that_panics_runs_again_until_it_ends() {
        let (panics, stop) = (Panics::default(), CancellationToken::new());
        let mut runs = 0;
        let run = || {
            runs += 1;
            let is_broken = runs < 3;
            async move { assert!(!is_broken, "on purpose") }
        };
        panics
            .restart_after(Duration::ZERO, "audit", "watch", run, &stop)
            .await;
        assert_eq!(runs, 3);
        assert_eq!(panics.count("audit", "watch"), 2);
    }

    #[tokio::test]
    async fn a_loop_that_panics_does_not_run_again_after_the_end() {
        let (panics, stop) = (Panics::default(), CancellationToken::new());
        stop.cancel();
        let mut runs = 0;
        let run = || {
            runs += 1;
            async { panic!("on purpose") }
        };
        panics.restart("audit", "watch", run, &stop).await;
        assert_eq!(runs, 1);
    }
}
