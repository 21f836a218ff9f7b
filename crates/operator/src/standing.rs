//! How an operator or a worker stands: whether the servers that it needs answer, and what it has
//! counted. Both are found out when somebody asks, within a short time, so that what is told is true
//! now.

use crate::message::{CATALOG, GENERATE, JobKind, REMATCH, SCAN};
use crate::work::Operator;
use crate::{discovery, job};
use jiff::Timestamp;
use kube::api::DynamicObject;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server may take to answer whoever asks.
const PATIENCE: Duration = Duration::from_secs(3);

/// How something stands that a process works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it is.
    pub name: &'static str,
    /// Whether nothing can be done without it.
    pub is_needed: bool,
    /// How it is, or what is wrong.
    pub state: Result<String, String>,
}

impl Operator {
    /// How the servers stand that every role needs.
    pub async fn servers(&self) -> Vec<Standing> {
        let late = || Err(format!("no answer within {} s", PATIENCE.as_secs()));
        let (cluster, queue) = tokio::join!(
            timeout(PATIENCE, self.client().apiserver_version()),
            timeout(PATIENCE, self.queue().depth(CATALOG)),
        );
        let needed = |name, state| Standing {
            name,
            is_needed: true,
            state,
        };
        vec![
            needed(
                "kube-apiserver",
                cluster.map_or_else(
                    |_| late(),
                    |answer| {
                        answer
                            .map(|_| "ok".into())
                            .map_err(|error| error.to_string())
                    },
                ),
            ),
            needed(
                "queue",
                queue.map_or_else(
                    |_| late(),
                    |answer| {
                        answer
                            .map(|_| "ok".into())
                            .map_err(|error| error.to_string())
                    },
                ),
            ),
        ]
    }

    /// How the vulnerability data stands. Images are read without it; matching waits for it.
    pub fn data(&self) -> Standing {
        let state = match self.knowledge().now() {
            Ok(known) => Ok(format!("revision {}", known.revision())),
            Err(trouble) => Err(trouble.to_string()),
        };
        Standing {
            name: "vulnerability data",
            is_needed: false,
            state,
        }
    }

    /// Brings what is counted elsewhere up to date: the queue, the jobs, the registries, the data.
    pub async fn measure(&self) {
        let counted = [CATALOG, GENERATE, SCAN, REMATCH].map(async |subject| {
            let depth = timeout(PATIENCE, self.queue().depth(subject)).await;
            let depth = depth.ok().and_then(Result::ok);
            self.metrics().queue(subject, depth);
        });
        // At once: whoever asks does not wait for long.
        futures::future::join_all(counted).await;
        for kind in [JobKind::ScanJob, JobKind::RegistryDiscovery] {
            let (running, waiting) = tally(kind, &self.jobs(kind));
            self.metrics().jobs(kind, running, waiting);
        }
        self.metrics().traffic(self.traffic().counts());
        let made = self.knowledge().now().ok().and_then(|known| known.made());
        self.metrics().data(made.map_or(0, Timestamp::as_second));
    }
}

/// How many jobs work, and how many wait.
fn tally(kind: JobKind, jobs: &[impl AsRef<DynamicObject>]) -> (usize, usize) {
    let (mut running, mut waiting) = (0, 0);
    for job in jobs {
        let status = &job.as_ref().data["status"];
        let (ended, started) = match kind {
            JobKind::ScanJob => (job::has_ended(status), status["startTime"].is_string()),
            JobKind::RegistryDiscovery => (
                discovery::has_ended(status),
                status["startedAt"].is_string(),
            ),
        };
        match (ended, started) {
            (true, _) => {}
            (false, true) => running += 1,
            (false, false) => waiting += 1,
        }
    }
    (running, waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn jobs_that_have_not_ended_work_or_wait() {
        let job = |kind: JobKind, status| {
            let mut job = DynamicObject::new("a", &kind.object().resource());
            job.data = json!({"status": status});
            Arc::new(job)
        };
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let scans = [json!({}), json!({"startTime": "now"}), complete];
        let scans = scans.map(|status| job(JobKind::ScanJob, status));
        assert_eq!(tally(JobKind::ScanJob, &scans), (1, 1));
        let discoveries = [
            json!({"currentStatus": "Pending"}),
            json!({"currentStatus": "Running", "startedAt": "now"}),
            json!({"currentStatus": "Succeeded", "startedAt": "now"}),
            json!({"currentStatus": "Succeeded", "startedAt": "now", "completedAt": "now"}),
            json!({"currentStatus": "Cancel", "startedAt": "now"}),
        ];
        let discoveries = discoveries.map(|status| job(JobKind::RegistryDiscovery, status));
        assert_eq!(tally(JobKind::RegistryDiscovery, &discoveries), (2, 1));
    }
}
