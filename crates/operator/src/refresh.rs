//! Vulnerability data that stays young: it is fetched when there is none, and when its makers said
//! that there would be newer. Where that fails, the last good data stays, and it is tried again
//! after a pause that grows.

use crate::work::{Operator, Trouble, VULNERABILITY_DATA, WORKER};
use muster_advisories::{Outcome, Silent, Update};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is seen whether newer data is due.
const LOOK: Duration = Duration::from_secs(15 * 60);
/// The pauses after failures.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Keeps the data young until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, update: Update, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        let pause = tokio::select! {
            () = stop.cancelled() => return,
            pause = once(&operator, &update, &mut failures) => pause,
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Fetches the data if it is due, and says when to look again.
async fn once(operator: &Operator, update: &Update, failures: &mut u32) -> Duration {
    let directory = operator.knowledge().data();
    let is_due = directory.open().map_or(true, |opened| opened.is_due());
    if !is_due {
        return LOOK;
    }
    let work = async {
        let done = directory.update(update, &Silent).await;
        done.map_err(|error| Trouble::Transient(error.to_string()))
    };
    match operator.catch(WORKER, VULNERABILITY_DATA, work).await {
        Ok(Outcome::Updated {
            repository,
            revision,
            ..
        }) => {
            tracing::info!(repository, revision, "vulnerability data fetched");
            operator.metrics().updated("updated");
            *failures = 0;
            LOOK
        }
        Ok(Outcome::Current { repository, .. }) => {
            tracing::debug!(repository, "there is no newer vulnerability data");
            operator.metrics().updated("unchanged");
            *failures = 0;
            LOOK
        }
        Err(error) => {
            *failures = failures.saturating_add(1);
            operator.metrics().updated("failed");
            let pause = pause(*failures);
            tracing::warn!(%error, minutes = pause.as_secs() / 60, "fetching vulnerability data failed, and is tried again");
            pause
        }
    }
}

fn pause(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST.saturating_mul(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bearable() {
        let minutes: Vec<u64> = (1..9).map(|count| pause(count).as_secs() / 60).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX), LONGEST);
    }
}
