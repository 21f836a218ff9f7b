//! What policies are told of themselves: whether they load and why not, and what they come to. Where
//! somebody else writes the status of policies, only our condition and our counts are added to it.

use crate::auditor::Auditor;
use crate::book::MANAGER;
use crate::ledger::{Counts, Place};
use crate::note::Key;
use crate::scope::Shard;
use crate::watch::policies;
use kube::api::{ObjectMeta, Patch, PatchParams};
use muster_policy::Sort;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often policies are told, at the most.
const EVERY: Duration = Duration::from_secs(1);
/// How often it is tried, if they cannot be told.
const RARELY: Duration = Duration::from_secs(60);
/// The condition that is ours.
pub(crate) const READY: &str = "AuditReady";
/// How many resources that nobody can list are named.
const MOST: usize = 10;
/// The longest message of a condition.
const LONGEST: usize = 32_000;

/// Whether a policy can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Readiness {
    Pending,
    Ready,
    Refused { reason: &'static str, why: String },
}

/// What is found of a policy.
#[derive(Clone, Debug, Default)]
struct Findings {
    counts: Counts,
    /// When all that it judges was last looked at, in seconds since 1970.
    verified: Option<i64>,
    /// What it judges and nobody can list, or report on, and why.
    incomplete: Vec<String>,
    /// What has to be seen before the audit begins and cannot be, and why.
    hindered: Option<String>,
}

/// A policy, as far as it is told something.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    sort: Sort,
    namespace: Option<String>,
    name: String,
    generation: i64,
    /// Its status as it was last seen.
    status: Value,
    readiness: Readiness,
    /// What was last said.
    said: Option<Value>,
    /// How often in a row it could not be fetched.
    pub(crate) tries: u32,
    /// How often a server that judges by it is still to be asked everything again, as it may not have
    /// known yet what was written.
    pub(crate) reasks: u32,
}

impl Told {
    pub(crate) fn new(sort: Sort) -> Told {
        Told {
            sort,
            namespace: None,
            name: String::new(),
            generation: 0,
            status: Value::Null,
            readiness: Readiness::Pending,
            said: None,
            tries: 0,
            reasks: 0,
        }
    }

    /// Takes note of the policy as it is; whether other shards count otherwise than before.
    pub(crate) fn observe(&mut self, metadata: &ObjectMeta, status: Value) -> bool {
        let moved = self.status["audit"]["shards"] != status["audit"]["shards"];
        self.namespace = metadata.namespace.clone();
        self.name = metadata.name.clone().unwrap_or_default();
        self.generation = metadata.generation.unwrap_or_default();
        self.status = status;
        moved
    }

    /// It is not known yet whether the policy can be asked.
    pub(crate) fn wait(&mut self) {
        self.readiness = Readiness::Pending;
        self.tries = 0;
    }

    /// The policy can be asked.
    pub(crate) fn accept(&mut self) {
        self.readiness = Readiness::Ready;
        self.tries = 0;
    }

    /// The policy cannot be asked.
    pub(crate) fn refuse(&mut self, reason: &'static str, why: &str) {
        let why = why.chars().take(LONGEST).collect();
        self.readiness = Readiness::Refused { reason, why };
    }

    /// What its status is to say.
    fn status(&self, found: &Findings, shard: Shard, is_alone: Option<&str>, now: &str) -> Value {
        let incomplete = found.incomplete.join("; ");
        let (status, reason, message) = match &self.readiness {
            Readiness::Pending => ("Unknown", "Pending", "The policy is being prepared."),
            Readiness::Ready => match &found.hindered {
                Some(why) => ("Unknown", "Pending", why.as_str()),
                None if incomplete.is_empty() => {
                    ("True", "Ready", "The policy judges what is there.")
                }
                None => ("True", "Incomplete", incomplete.as_str()),
            },
            Readiness::Refused { reason, why } => ("False", *reason, why.as_str()),
        };
        // Another shard may say otherwise; since when it is so for us we know best.
        let since = |kind: &str, of: &Value| {
            let mut written = of["conditions"].as_array().into_iter().flatten();
            let same = written.find(|one| one["type"] == kind && one["status"] == status)?;
            same["lastTransitionTime"].as_str().map(str::to_owned)
        };
        let condition = |kind: &str| {
            let ours = self.said.as_ref().and_then(|said| since(kind, said));
            let since = ours.or_else(|| since(kind, &self.status));
            let since = since.unwrap_or_else(|| now.to_owned());
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "observedGeneration": self.generation, "lastTransitionTime": since,
            })
        };
        let mut said =
            json!({"conditions": [condition(READY)], "audit": self.audit(found.counts, shard)});
        if let Some(verified) = found
            .verified
            .and_then(|at| jiff::Timestamp::from_second(at).ok())
        {
            said["audit"]["lastVerified"] = verified.to_string().into();
        }
        if let Some(mode) = is_alone {
            let active = self.readiness == Readiness::Ready;
            said["policyStatus"] = if active { "active" } else { "pending" }.into();
            said["mode"] = mode.into();
            if let Some(conditions) = said["conditions"].as_array_mut() {
                conditions.push(condition("PolicyActive"));
            }
        }
        said
    }

    /// What it comes to: what we count, and what the other shards said they count.
    fn audit(&self, counts: Counts, shard: Shard) -> Value {
        let ours = json!({
            "pass": counts.pass, "fail": counts.fail, "error": counts.error,
            "mutated": counts.mutated, "skip": counts.skip,
        });
        if shard.is_whole() {
            return ours;
        }
        let name = shard.to_string();
        let of = name.split_once('/').map_or("", |(_, of)| of);
        let shards = self.status["audit"]["shards"].as_array();
        let others: Vec<&Value> = shards
            .into_iter()
            .flatten()
            .filter(|one| {
                let other = one["shard"].as_str().unwrap_or_default();
                other != name && other.split_once('/').is_some_and(|(_, their)| their == of)
            })
            .collect();
        let mut sum = ours.clone();
        for field in ["pass", "fail", "error", "mutated", "skip"] {
            let theirs: u64 = others.iter().filter_map(|one| one[field].as_u64()).sum();
            sum[field] = (ours[field].as_u64().unwrap_or_default() + theirs).into();
        }
        let mut own = ours;
        own["shard"] = name.into();
        sum["shards"] = json!([own]);
        sum
    }
}

impl Auditor {
    /// Tells policies what is new of them until `stop`.
    pub(crate) async fn tell(&self, stop: &CancellationToken) {
        let mut wait = EVERY;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            self.count();
            if self.take_news() {
                let told = tokio::select! {
                    () = stop.cancelled() => return,
                    told = self.tell_all() => told,
                };
                wait = if told { EVERY } else { (wait * 2).min(RARELY) };
            }
        }
    }

    fn count(&self) {
        let pending = self.pending();
        let state = self.state();
        self.metrics
            .know(state.ledger.size(), state.trouble.len(), pending);
        let count = |ready: fn(&Readiness) -> bool| {
            let told = state.told.values();
            told.filter(|told| ready(&told.readiness)).count()
        };
        self.metrics
            .policies("ready", count(|one| *one == Readiness::Ready));
        self.metrics
            .policies("pending", count(|one| *one == Readiness::Pending));
        let refused = count(|one| matches!(one, Readiness::Refused { .. }));
        self.metrics.policies("refused", refused);
    }

    /// Tells all policies what is new; says whether they could be told.
    async fn tell_all(&self) -> bool {
        let mut all = true;
        let keys: Vec<Key> = self.state().told.keys().copied().collect();
        for key in keys {
            let Some((told, said)) = self.news_of(key) else {
                continue;
            };
            let work = self.say(&told, said.clone());
            let done = self.metrics.panics.catch("audit", "status", work).await;
            let done = done.unwrap_or_else(|panicked| Err(kube::Error::Service(panicked.into())));
            match done {
                Ok(()) => {
                    if let Some(told) = self.state().told.get_mut(&key) {
                        told.said = Some(said);
                    }
                }
                Err(error) => {
                    let (kind, name) = (told.sort.kind(), &told.name);
                    tracing::warn!(%error, kind, name, "telling a policy what the audit came to");
                    self.told();
                    all = false;
                }
            }
        }
        all
    }

    /// What a policy is to be told, if it is new.
    fn news_of(&self, key: Key) -> Option<(Told, Value)> {
        let state = self.state();
        let told = state.told.get(&key)?.clone();
        let known = state.view.policy(key);
        let mode = known.map_or("unknown", |known| {
            if known.policy.monitor {
                "monitor"
            } else {
                "protect"
            }
        });
        let interests = state.view.interests();
        let mut places: Vec<&Place> = interests
            .filter(|(_, interest)| interest.policies.iter().any(|one| one.key == key))
            .map(|(place, _)| place)
            .collect();
        places.sort();
        let verified = places
            .iter()
            .map(|place| state.verified.get(*place).copied());
        let verified = verified.collect::<Option<Vec<i64>>>();
        let unlisted = places
            .iter()
            .filter_map(|place| Some((place, state.trouble.get(*place)?)));
        let mut incomplete: Vec<String> = unlisted
            .take(MOST)
            .map(|(place, (_, why))| format!("Not listed: {}: {why}", place.1))
            .collect();
        let foreign = state.foreign.values();
        let foreign = foreign.filter(|place| places.contains(place)).count();
        if foreign > 0 {
            incomplete.push(format!(
                "Not reported: {foreign} objects on which somebody else reports under the same name"
            ));
        }
        let found = Findings {
            counts: state.ledger.counts(key),
            verified: verified.and_then(|times| times.into_iter().min()),
            incomplete,
            hindered: state.hindrance(),
        };
        drop(state);
        let now = jiff::Timestamp::now();
        let now = now.round(jiff::Unit::Second).unwrap_or(now).to_string();
        let is_alone = self.is_alone.then_some(mode);
        let said = told.status(&found, self.scope.shard, is_alone, &now);
        (told.said.as_ref() != Some(&said)).then_some((told, said))
    }

    async fn say(&self, told: &Told, mut said: Value) -> kube::Result<()> {
        let api = policies(self.home.clone(), told.sort, told.namespace.as_deref());
        let manager = match self.scope.shard.is_whole() {
            true => MANAGER.to_owned(),
            false => format!("{MANAGER}-{}", self.scope.shard).replace('/', "-of-"),
        };
        let parameters = PatchParams::apply(&manager).force();
        let object = |status: &Value| {
            json!({
                "apiVersion": format!("{}/{}", muster_api::policies::GROUP, muster_api::policies::VERSION),
                "kind": told.sort.kind(), "metadata": {"name": told.name}, "status": status,
            })
        };
        self.pace.turn().await;
        self.metrics.asked("status");
        let patched = api
            .patch_status(&told.name, &parameters, &Patch::Apply(object(&said)))
            .await;
        match patched {
            Ok(_) => Ok(()),
            // It went meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            // Another's definition of policies has no place for counts.
            Err(kube::Error::Api(status))
                if status.code != 403 && status.message.contains("audit") =>
            {
                if let Some(said) = said.as_object_mut() {
                    said.remove("audit");
                }
                let patch = Patch::Apply(object(&said));
                api.patch_status(&told.name, &parameters, &patch)
                    .await
                    .map(drop)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05Z";

    fn told(status: Value) -> Told {
        let mut told = Told::new(Sort::Cluster);
        told.status = status;
        told
    }

    fn counts(pass: u64, fail: u64) -> Counts {
        Counts {
            pass,
            fail,
            ..Counts::default()
        }
    }

    #[test]
    fn a_condition_keeps_its_time_as_long_as_it_holds() {
        let earlier = "2026-01-01T00:00:00Z";
        let before = |status: &str| {
            json!({"conditions": [
                {"type": "PolicyActive", "status": "True", "lastTransitionTime": "x"},
                {"type": READY, "status": status, "lastTransitionTime": earlier},
            ]})
        };
        for (before, since) in [
            (before("True"), earlier),
            (before("False"), NOW),
            (json!({}), NOW),
        ] {
            let mut told = told(before);
            told.accept();
            let said = told.status(&Findings::default(), Shard::default(), None, NOW);
            assert_eq!(
                said["conditions"].as_array().map(Vec::len),
                Some(1),
                "only ours"
            );
            assert_eq!(said["conditions"][0]["lastTransitionTime"], since);
            assert_eq!(said["policyStatus"], Value::Null);
        }
    }

    #[test]
    fn a_policy_that_does_not_load_is_told_why() {
        let mut told = told(json!({}));
        told.refuse("SettingsRefused", "the settings are refused: no");
        let alone = Some("monitor");
        let said = told.status(&Findings::default(), Shard::default(), alone, NOW);
        assert_eq!(said["conditions"][0]["reason"], "SettingsRefused");
        assert_eq!(
            said["conditions"][0]["message"],
            "the settings are refused: no"
        );
        assert_eq!(
            (&said["policyStatus"], &said["mode"]),
            (&json!("pending"), &json!("monitor"))
        );
    }

    #[test]
    fn what_cannot_be_listed_is_told() {
        let mut told = told(json!({}));
        told.accept();
        let found = Findings {
            incomplete: vec!["Not listed: secrets: no".into()],
            ..Findings::default()
        };
        let said = told.status(&found, Shard::default(), None, NOW);
        assert_eq!(said["conditions"][0]["status"], "True");
        assert_eq!(said["conditions"][0]["reason"], "Incomplete");
        assert_eq!(said["conditions"][0]["message"], "Not listed: secrets: no");
    }

    #[test]
    fn a_policy_is_not_said_to_judge_before_the_audit_can_begin() {
        let mut told = told(json!({}));
        let found = Findings {
            hindered: Some("The audit has not begun: PolicyReport: no".into()),
            ..Findings::default()
        };
        told.accept();
        let said = told.status(&found, Shard::default(), None, NOW);
        assert_eq!(said["conditions"][0]["status"], "Unknown");
        assert_eq!(said["conditions"][0]["reason"], "Pending");
        assert_eq!(
            said["conditions"][0]["message"],
            "The audit has not begun: PolicyReport: no"
        );
        told.refuse("SettingsRefused", "no");
        let said = told.status(&found, Shard::default(), None, NOW);
        assert_eq!(said["conditions"][0]["reason"], "SettingsRefused");
    }

    #[test]
    fn shards_add_up() {
        let shard: Shard = "2/3".parse().unwrap();
        let told = told(json!({"audit": {"shards": [
            {"shard": "1/3", "pass": 5, "fail": 1},
            {"shard": "2/3", "pass": 100, "fail": 100},
            {"shard": "1/2", "pass": 1000, "fail": 1000},
        ]}}));
        let audit = told.audit(counts(2, 3), shard);
        assert_eq!((&audit["pass"], &audit["fail"]), (&json!(7), &json!(4)));
        assert_eq!(audit["shards"].as_array().map(Vec::len), Some(1));
        assert_eq!(audit["shards"][0]["shard"], "2/3");
        assert_eq!(
            told.audit(counts(2, 3), Shard::default())["shards"],
            Value::Null
        );
        // What another counts anew is a reason to add up again, and nothing else is.
        let mut told = told;
        let same = json!({"mode": "monitor", "audit": told.status["audit"].clone()});
        assert!(!told.observe(&ObjectMeta::default(), same.clone()));
        let mut other = same;
        other["audit"]["shards"][0]["pass"] = json!(6);
        assert!(told.observe(&ObjectMeta::default(), other));
    }
}
