//! How long one stage of one image, or one catalog, may take, and what an outage of our own API server
//! means for it: nothing but time. It uses up no try, and nobody is told that an image cannot be
//! scanned because a database was restarted.

use crate::work::Trouble;
use std::time::Duration;

/// How long one try may take, and the pauses between tries while our own API server cannot be asked.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    first: Duration,
    longest: Duration,
    deadline: Duration,
}

/// As everything is done.
pub(crate) const PATIENCE: Patience = Patience {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(15),
    deadline: Duration::from_secs(30 * 60),
};

impl Patience {
    /// Does a piece of work, and does it again while the API server cannot be asked.
    pub(crate) async fn work<F>(self, work: impl Fn() -> F) -> Result<(), Trouble>
    where
        F: Future<Output = Result<(), Trouble>>,
    {
        let mut pause = self.first;
        loop {
            let late = || format!("not done within {:?}", self.deadline);
            let done = tokio::time::timeout(self.deadline, work()).await;
            match done.unwrap_or_else(|_| Err(Trouble::Transient(late()))) {
                Err(trouble) if trouble.is_outage() => {
                    tracing::warn!(%trouble, ?pause, "waiting for the API server");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.longest);
                }
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SHORT: Patience = Patience {
        first: Duration::from_micros(1),
        longest: Duration::from_micros(4),
        ..PATIENCE
    };

    fn refusal(code: u16) -> Trouble {
        let status = kube::core::Status::failure("busy", "Busy").with_code(code);
        Trouble::Api(kube::Error::Api(status.boxed()))
    }

    #[tokio::test]
    async fn an_outage_of_the_api_server_is_waited_for_and_a_refusal_is_not() {
        for (code, outage) in [
            (503, true),
            (429, true),
            (500, false),
            (409, false),
            (422, false),
        ] {
            let tries = AtomicUsize::new(0);
            let work = || async {
                match tries.fetch_add(1, Ordering::SeqCst) {
                    0..20 => Err(refusal(code)),
                    _ => Ok(()),
                }
            };
            assert_eq!(SHORT.work(work).await.is_ok(), outage, "{code}");
            let expected = if outage { 21 } else { 1 };
            assert_eq!(tries.load(Ordering::SeqCst), expected, "{code}");
        }
    }

    #[tokio::test]
    async fn work_without_end_is_given_up_and_may_be_tried_again() {
        let impatient = Patience {
            deadline: Duration::from_millis(5),
            ..SHORT
        };
        let done = impatient.work(std::future::pending).await;
        assert!(done.is_err_and(|trouble| !trouble.is_permanent()));
    }
}
