//! When a demonstration is ready: what has to be there follows from what was applied, and it is looked at
//! until it is. What is missing is told by name, so that nobody waits without knowing for what.

use anyhow::{Context, Result};
use kube::Client;
use muster_demo::site::Site;
use muster_demo::statements::{HARMLESS, REPOSITORY};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long everything may take, on a machine that has other things to do as well.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(150);
/// The namespace into which the whole registry is scanned.
const CATALOG: &str = "catalog";
const STORAGE: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1";
const SCANNER: &str = "/apis/sbomscanner.kubewarden.io/v1alpha1";
const POLICIES: &str = "/apis/policies.kubewarden.io/v1";
const CHECKS: &str = "/apis/aquasecurity.github.io/v1alpha1";
/// The kinds that every policy of the demonstration is about.
const JUDGED: [&str; 6] = [
    "Pod",
    "ReplicaSet",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "Job",
];

/// Where something is: a namespace, and a name in it.
type Key = (String, String);

/// What has to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    /// Reports of workloads that are scanned.
    pub(super) workloads: BTreeSet<Key>,
    /// Reports of checks.
    pub(super) checked: BTreeSet<Key>,
    /// Policies, by name.
    pub(super) policies: BTreeSet<String>,
    /// How many objects each of them is about.
    pub(super) judged: u64,
    /// How many images the registry has, counted by platform.
    pub(super) images: usize,
}

/// How much of it is there.
pub(super) struct Seen {
    pub(super) done: usize,
    pub(super) of: usize,
    /// What is not.
    pub(super) missing: Vec<String>,
}

/// What the server has.
#[derive(Default)]
struct State {
    workloads: Vec<Value>,
    findings: Vec<Value>,
    jobs: Vec<Value>,
    policies: Vec<Value>,
    checks: Vec<Value>,
}

impl Expected {
    /// What follows from these objects and images.
    pub(super) fn of(objects: &[Value], site: &Site) -> Expected {
        let production: BTreeSet<&str> = objects
            .iter()
            .filter(|object| object["kind"] == "Namespace")
            .filter(|object| object["metadata"]["labels"]["environment"] == "production")
            .filter_map(|object| object["metadata"]["name"].as_str())
            .collect();
        let mut expected = Expected {
            images: site.images().iter().map(|image| image.builds.len()).sum(),
            ..Expected::default()
        };
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            let (namespace, name) = key(object);
            if kind.starts_with("ClusterAdmissionPolicy") {
                expected.policies.insert(name);
                continue;
            }
            if !JUDGED.contains(&kind) {
                continue;
            }
            expected.judged += 1;
            // What another makes is reported with that one.
            if !object["metadata"]["ownerReferences"].is_null() {
                continue;
            }
            let report = (namespace.clone(), format!("{}-{name}", kind.to_lowercase()));
            expected.checked.insert(report.clone());
            if production.contains(&*namespace) {
                expected.workloads.insert(report);
            }
        }
        expected
    }

    /// How much of it is there in that state.
    fn seen(&self, state: &State) -> Seen {
        let mut missing = Vec::new();
        let mut judge = |is_there: bool, what: String| {
            if !is_there {
                missing.push(what);
            }
        };
        for place in &self.workloads {
            let report = state.workloads.iter().find(|report| key(report) == *place);
            let what = format!("the scan of {}/{}", place.0, place.1);
            judge(report.is_some_and(is_scanned), what);
        }
        for place in &self.checked {
            let is_there = state.checks.iter().any(|report| key(report) == *place);
            judge(is_there, format!("the checks of {}/{}", place.0, place.1));
        }
        for name in &self.policies {
            let policy = state.policies.iter().find(|policy| key(policy).1 == *name);
            let count = policy.map_or(0, judged);
            judge(count >= self.judged, format!("the audit by {name}"));
        }
        for number in 0..self.images {
            judge(number < state.findings.len(), "a scan of an image".into());
        }
        let jobs = !state.jobs.is_empty() && state.jobs.iter().all(is_finished);
        judge(jobs, "the end of a scan".into());
        let harmless = state.findings.iter().any(|report| {
            let image = &report["imageMetadata"]["repository"];
            let suppressed = report["report"]["summary"]["suppressed"].as_u64();
            image == REPOSITORY && suppressed == Some(HARMLESS.len() as u64)
        });
        judge(harmless, format!("what is said about {REPOSITORY}"));
        missing.dedup();
        let of = self.workloads.len() + self.checked.len() + self.policies.len() + self.images + 2;
        Seen {
            done: of.saturating_sub(missing.len()),
            of,
            missing,
        }
    }
}

/// Looks until everything is there, or for as long as anybody would wait; gives what is missing then.
pub(super) async fn wait(
    client: &Client,
    expected: &Expected,
    tell: impl Fn(&Seen),
) -> Result<Vec<String>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = expected.seen(&look(client).await?);
        tell(&seen);
        if seen.missing.is_empty() || Instant::now() >= deadline {
            return Ok(seen.missing);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn look(client: &Client) -> Result<State> {
    let mut policies = items(client, &format!("{POLICIES}/clusteradmissionpolicies")).await?;
    let groups = format!("{POLICIES}/clusteradmissionpolicygroups");
    policies.extend(items(client, &groups).await?);
    let findings = format!("{STORAGE}/namespaces/{CATALOG}/vulnerabilityreports");
    Ok(State {
        workloads: items(
            client,
            &format!("{STORAGE}/workloadscanreports?computed=brief"),
        )
        .await?,
        findings: items(client, &findings).await?,
        jobs: items(client, &format!("{SCANNER}/scanjobs")).await?,
        checks: items(client, &format!("{CHECKS}/configauditreports")).await?,
        policies,
    })
}

async fn items(client: &Client, path: &str) -> Result<Vec<Value>> {
    let what = || format!("listing {path}");
    let request = http::Request::get(path)
        .body(Vec::new())
        .with_context(what)?;
    let mut list: Value = client.request(request).await.with_context(what)?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

fn key(object: &Value) -> Key {
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .into()
    };
    (text("namespace"), text("name"))
}

/// Whether all containers of a workload are scanned.
fn is_scanned(report: &Value) -> bool {
    let statuses = report["status"]["containerStatuses"].as_array();
    statuses.is_some_and(|all| {
        !all.is_empty() && all.iter().all(|one| one["scanStatus"] == "ScanComplete")
    })
}

/// How many objects a policy has judged.
fn judged(policy: &Value) -> u64 {
    let audit = &policy["status"]["audit"];
    let count = |field: &str| audit[field].as_u64().unwrap_or_default();
    count("pass") + count("fail") + count("error")
}

fn is_finished(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        let is_last = condition["type"] == "Complete" || condition["type"] == "Failed";
        is_last && condition["status"] == "True"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, namespace: &str, name: &str) -> Value {
        json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}})
    }

    #[test]
    fn what_is_expected_follows_from_what_was_applied() {
        let site = Site::new(Vec::new(), "127.0.0.1:1".parse().expect("an address"));
        let mut production = object("Namespace", "", "shop");
        production["metadata"]["labels"] = json!({"environment": "production"});
        let mut owned = object("Pod", "shop", "web-1");
        owned["metadata"]["ownerReferences"] = json!([{}]);
        let objects = [
            production,
            object("Namespace", "", "sandbox"),
            object("ClusterAdmissionPolicyGroup", "", "non-root"),
            object("Service", "shop", "web"),
            object("Deployment", "shop", "web"),
            owned,
            object("Pod", "sandbox", "debug"),
        ];
        let expected = Expected::of(&objects, &site.expect("a site"));
        let place = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let workload = place("shop", "deployment-web");
        assert_eq!(expected.workloads, BTreeSet::from([workload.clone()]));
        let checked = BTreeSet::from([workload, place("sandbox", "pod-debug")]);
        assert_eq!(expected.checked, checked);
        assert_eq!((expected.policies.len(), expected.judged), (1, 3));
    }

    #[test]
    fn what_is_missing_is_named_until_nothing_is() {
        let place = ("shop".to_owned(), "deployment-web".to_owned());
        let expected = Expected {
            workloads: BTreeSet::from([place.clone()]),
            checked: BTreeSet::from([place]),
            policies: BTreeSet::from(["p".to_owned()]),
            judged: 2,
            images: 1,
        };
        let mut state = State::default();
        let seen = expected.seen(&state);
        assert_eq!((seen.done, seen.of), (0, 6), "{:?}", seen.missing);
        let mut report = object("", "shop", "deployment-web");
        report["status"] = json!({"containerStatuses": [{"scanStatus": "ScanComplete"}]});
        state.workloads = vec![report.clone()];
        state.checks = vec![report];
        let mut policy = object("", "", "p");
        policy["status"] = json!({"audit": {"pass": 1, "fail": 1}});
        state.policies = vec![policy];
        state.jobs =
            vec![json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}})];
        state.findings = vec![json!({
            "imageMetadata": {"repository": REPOSITORY}, "report": {"summary": {"suppressed": 3}},
        })];
        assert_eq!(expected.seen(&state).missing, Vec::<String>::new());
        state.jobs = vec![json!({})];
        assert_eq!(expected.seen(&state).missing, ["the end of a scan"]);
    }
}
