//! The columns of Pods: how many containers are ready, what the pod is doing, and how often its
//! containers were restarted, by the rules Kubernetes itself prints them.

use super::cell::{age_column, condition, items, number, since, text, text_column, text_or};
use muster_kind::Column;
use serde_json::Value;

pub(super) fn columns() -> Vec<Column> {
    vec![
        text_column("Ready", |pod| summary(pod).ready.into()).describe("Ready containers of all."),
        text_column("Status", |pod| summary(pod).status.into()).describe("What the pod is doing."),
        text_column("Restarts", |pod| summary(pod).restarts.into())
            .describe("How often containers were restarted, and when last."),
        age_column(),
        text_column("IP", |pod| text_or(pod, "/status/podIPs/0/ip", "<none>"))
            .wide()
            .describe("The pod's address."),
        text_column("Node", |pod| text_or(pod, "/spec/nodeName", "<none>"))
            .wide()
            .describe("The node the pod runs on."),
        text_column("Nominated Node", |pod| {
            text_or(pod, "/status/nominatedNodeName", "<none>")
        })
        .wide()
        .describe("The node the pod is to run on."),
        text_column("Readiness Gates", readiness_gates)
            .wide()
            .describe("Fulfilled readiness gates of all."),
    ]
}

struct Summary {
    ready: String,
    status: String,
    restarts: String,
}

/// Restarts of some containers and the time of the last one.
#[derive(Clone, Copy, Default)]
struct Restarts<'a> {
    count: i64,
    last: &'a str,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count += number(status, "/restartCount");
        // Times of one form and zone: their text sorts as they do.
        self.last = self
            .last
            .max(text(status, "/lastState/terminated/finishedAt"));
    }
}

fn summary(pod: &Value) -> Summary {
    let mut ready = 0;
    let mut status = match (text(pod, "/status/reason"), text(pod, "/status/phase")) {
        ("", phase) => phase.to_owned(),
        (reason, _) => reason.to_owned(),
    };
    let gated = items(pod, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "PodScheduled"
            && text(condition, "/reason") == "SchedulingGated"
    });
    if gated {
        status = "SchedulingGated".into();
    }
    let init = items(pod, "/spec/initContainers");
    let sidecar = |name: &str| {
        init.iter()
            .any(|c| text(c, "/name") == name && text(c, "/restartPolicy") == "Always")
    };
    let sidecars = init
        .iter()
        .filter(|c| text(c, "/restartPolicy") == "Always")
        .count();
    let total = items(pod, "/spec/containers").len() + sidecars;

    let (mut restarts, mut sidecar_restarts) = (Restarts::default(), Restarts::default());
    let mut initializing = false;
    for (index, container) in items(pod, "/status/initContainerStatuses")
        .iter()
        .enumerate()
    {
        restarts.add(container);
        let is_sidecar = sidecar(text(container, "/name"));
        if is_sidecar {
            sidecar_restarts.add(container);
        }
        let terminated = container.pointer("/state/terminated");
        if terminated.is_some_and(|state| number(state, "/exitCode") == 0) {
            continue;
        }
        if is_sidecar && container["started"] == true {
            ready += i64::from(container["ready"] == true);
            continue;
        }
        status = match (terminated, text(container, "/state/waiting/reason")) {
            (Some(state), _) => format!("Init:{}", end(state)),
            (None, "" | "PodInitializing") => format!("Init:{index}/{}", init.len()),
            (None, reason) => format!("Init:{reason}"),
        };
        initializing = true;
        break;
    }

    if !initializing || condition(pod, "Initialized") {
        restarts = sidecar_restarts;
        let mut running = false;
        let mut failure = None;
        for container in items(pod, "/status/containerStatuses").iter().rev() {
            restarts.add(container);
            let waiting = text(container, "/state/waiting/reason");
            if !waiting.is_empty() {
                status = waiting.into();
            } else if let Some(state) = container.pointer("/state/terminated") {
                status = end(state);
                if number(state, "/exitCode") != 0 {
                    failure = Some(status.clone());
                }
            } else if container["ready"] == true && container.pointer("/state/running").is_some() {
                running = true;
                ready += 1;
            }
        }
        // One container being done does not end a pod in which another still runs.
        if status == "Completed" {
            if running && condition(pod, "Ready") {
                status = "Running".into();
            } else if let Some(failure) = failure {
                status = failure;
            } else if running {
                status = "NotReady".into();
            }
        }
    }

    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        if text(pod, "/status/reason") == "NodeLost" {
            status = "Unknown".into();
        } else if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
            status = "Terminating".into();
        }
    }
    let restarts = match restarts {
        Restarts { count, last } if count != 0 && !last.is_empty() => {
            format!("{count} ({} ago)", since(Some(&last.into())))
        }
        Restarts { count, .. } => count.to_string(),
    };
    Summary {
        ready: format!("{ready}/{total}"),
        status,
        restarts,
    }
}

/// How a container ended: its reason, or the signal, or the exit code.
fn end(state: &Value) -> String {
    match (text(state, "/reason"), number(state, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(state, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = items(pod, "/spec/readinessGates");
    let fulfilled = gates
        .iter()
        .filter(|gate| condition(pod, text(gate, "/conditionType")))
        .count();
    if gates.is_empty() {
        "<none>".into()
    } else {
        format!("{fulfilled}/{}", gates.len()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: Value) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "a"}, {"name": "b"}],
                "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            },
            "status": status,
        })
    }

    #[test]
    fn a_pod_shows_what_its_containers_do() {
        let running = json!({"ready": true, "state": {"running": {}}});
        let done = json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let broken = json!({"state": {"terminated": {"exitCode": 2}}});
        let initialized = json!({"name": "i", "state": {"terminated": {"exitCode": 0}}});
        for (status, shown) in [
            (json!({"phase": "Pending"}), ("0/3", "Pending", "0")),
            (
                json!({"phase": "Failed", "reason": "Evicted"}),
                ("0/3", "Evicted", "0"),
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
                ("0/3", "Init:0/2", "0"),
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
                ("0/3", "Init:CrashLoopBackOff", "3"),
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1, "signal": 9}}}]}),
                ("0/3", "Init:Signal:9", "0"),
            ),
            (
                json!({"phase": "Running", "initContainerStatuses": [initialized, {"name": "s", "started": true, "ready": true}], "containerStatuses": [running, running]}),
                ("3/3", "Running", "0"),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}, running]}),
                ("1/3", "CrashLoopBackOff", "4"),
            ),
            (
                json!({"phase": "Succeeded", "containerStatuses": [done, done]}),
                ("0/3", "Completed", "0"),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [done, running]}),
                ("1/3", "NotReady", "0"),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [done, broken]}),
                ("0/3", "ExitCode:2", "0"),
            ),
            (
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [done, running]}),
                ("1/3", "Running", "0"),
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
                ("0/3", "SchedulingGated", "0"),
            ),
        ] {
            let summary = summary(&pod(status.clone()));
            let cells = (&*summary.ready, &*summary.status, &*summary.restarts);
            assert_eq!(cells, shown, "{status}");
        }
    }

    #[test]
    fn a_pod_being_deleted_is_terminating() {
        let mut pod = pod(json!({"phase": "Running"}));
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(summary(&pod).status, "Terminating");
        pod["status"]["phase"] = "Failed".into();
        assert_eq!(summary(&pod).status, "Failed");
        pod["status"]["reason"] = "NodeLost".into();
        assert_eq!(summary(&pod).status, "Unknown");
    }

    #[test]
    fn the_last_restart_is_dated() {
        let last = json!({"terminated": {"finishedAt": muster_kind::time::now()}});
        let pod = pod(json!({"containerStatuses": [{"restartCount": 2, "lastState": last}]}));
        assert!(
            summary(&pod).restarts.starts_with("2 ("),
            "{}",
            summary(&pod).restarts
        );
    }
}
