//! Objects and policies in, verdicts out. Objects come as a stream and are judged by a bounded number
//! of threads; of an object that was judged only what was said of it is kept.

use super::configuration::{Checked, Configuration, Said};
use super::lookup::labels_of;
use super::manifest::Origin;
use super::talk::Talk;
use futures::{Stream, StreamExt};
use muster_audit::note::{Key, Stamp};
use muster_audit::rest::{RESTS, Rests};
use muster_kind::Digest;
use muster_policy::report::Subject;
use muster_policy::rules::MatchPolicy;
use muster_policy::{Outcome, Policy, Prepared, Request, Served, Standing, Target, Verdict};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

/// A policy that judges.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) prepared: Prepared,
    /// What people should know about it, if it says so.
    pub(super) description: Option<String>,
}

impl Known {
    pub(super) fn policy(&self) -> &Policy {
        &self.prepared.policy
    }
}

/// Everything that objects are judged with.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) policies: Vec<Known>,
    /// The checks of configuration.
    pub(super) configuration: Configuration,
    /// The labels of the namespaces.
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The namespace of the admission controller, which policies leave alone.
    pub(super) controller: Option<String>,
    /// Which policies are not asked for a while.
    pub(super) rests: Rests,
}

/// An object to judge.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) served: Arc<Served>,
    pub(super) object: Value,
    /// Where it was written, if it is a manifest.
    pub(super) origin: Option<Origin>,
    /// Only the policies that want to see it in this version are asked; all of them if it comes in no
    /// other.
    pub(super) version: Option<Arc<str>>,
}

/// What was said of an object.
#[derive(Debug)]
pub(super) struct Audited {
    pub(super) subject: Subject,
    pub(super) origin: Option<Origin>,
    /// The policies that it keeps, by their place.
    pub(super) passed: Vec<usize>,
    /// What other policies say: that it does not, that nobody knows, or what they would change.
    pub(super) said: Vec<(usize, Verdict)>,
    /// How many policies were left out that are about it.
    pub(super) skipped: usize,
    /// What configuration checks say, if there are any about it.
    pub(super) checked: Option<Checked>,
    /// A version that policies would rather have seen.
    wanted: Option<String>,
}

impl Audited {
    /// Whether nobody was asked about it.
    pub(super) fn is_silent(&self) -> bool {
        !self.is_judged() && self.checked.is_none()
    }

    /// Whether a policy was asked about it.
    pub(super) fn is_judged(&self) -> bool {
        !self.passed.is_empty() || !self.said.is_empty()
    }

    /// What configuration checks say, other than that all is well.
    pub(super) fn findings(&self) -> &[Said] {
        self.checked.as_ref().map_or(&[], |checked| &checked.said)
    }

    /// How many policies and checks it keeps.
    pub(super) fn kept(&self) -> usize {
        let checked = self.checked.as_ref();
        self.passed.len() + checked.map_or(0, |checked| checked.passed)
    }

    /// What policies refuse, or could not say.
    pub(super) fn refusals(&self) -> impl Iterator<Item = (usize, &Verdict)> {
        let said = self.said.iter().map(|(policy, verdict)| (*policy, verdict));
        said.filter(|(_, verdict)| verdict.outcome != Outcome::Pass)
    }
}

impl Bench {
    /// Judges an object. It may take as long as its policies may.
    pub(super) fn judge(&self, job: Job) -> Audited {
        let mut audited = Audited {
            subject: subject(&job),
            checked: self.configuration.check(&job),
            origin: job.origin,
            passed: Vec::new(),
            said: Vec::new(),
            skipped: 0,
            wanted: None,
        };
        let (served, labels) = (&*job.served, labels_of(&job.object));
        let subject = &audited.subject;
        let target = Target {
            namespace: subject.namespace.as_deref(),
            name: &subject.name,
            labels: &labels,
        };
        let mut asked = Vec::new();
        for (place, known) in self.policies.iter().enumerate() {
            let policy = known.policy();
            let version = policy.version_of(served);
            if job.version.is_some() && version != job.version.as_deref() {
                continue;
            }
            let controller = self.controller.as_deref();
            match policy.standing(served, target, &self.namespaces, controller) {
                Standing::Apart => {}
                Standing::Excluded => audited.skipped += 1,
                Standing::Asked(version) => {
                    // Nobody here can turn a manifest into another version.
                    let is_other = job.version.is_none()
                        && served.versions.first().map(String::as_str) != Some(version);
                    if is_other && policy.match_policy == MatchPolicy::Exact {
                        continue;
                    }
                    if is_other {
                        audited.wanted = Some(version.to_owned());
                    }
                    asked.push(place);
                }
            }
        }
        if asked.is_empty() {
            return audited;
        }
        let request = Request::create(&served.resource, job.object);
        for place in asked {
            let verdict = self.ask(place, &request);
            match verdict {
                None => {}
                Some(verdict) if verdict == Verdict::pass() => audited.passed.push(place),
                Some(verdict) => audited.said.push((place, verdict)),
            }
        }
        audited
    }
}

impl Bench {
    /// Asks a policy, unless it rests because it used up its time on one object after the other.
    fn ask(&self, place: usize, request: &Request) -> Option<Verdict> {
        let prepared = &self.policies[place].prepared;
        let (key, policy) = (Key::of(&place.to_string()), &prepared.policy);
        let owner = policy.namespace.as_deref();
        let begun = Instant::now();
        if self.rests.left_of(key, Stamp::NONE, owner, begun).is_some() {
            return Some(Verdict::error(RESTS));
        }
        let verdict = prepared.ask(request);
        let times = policy.members().into_iter().map(|(_, member)| member.time);
        let failed = verdict.as_ref().map(|verdict| verdict.outcome) == Some(Outcome::Error);
        let slow = failed && begun.elapsed() >= times.min().unwrap_or_default();
        self.rests
            .note_of(key, Stamp::NONE, owner, slow, Instant::now());
        verdict
    }
}

/// What the report is about. An object that was never stored has no identity, so it gets one that is
/// the same whenever it is asked about.
fn subject(job: &Job) -> Subject {
    let text = |at: &str| {
        let found = job.object.pointer(at).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let mut name = text("/metadata/name");
    let mut identity = vec![
        job.served.group.clone(),
        text("/kind"),
        text("/metadata/namespace"),
    ];
    if name.is_empty() {
        name = text("/metadata/generateName");
        let origin = job.origin.as_ref().map(ToString::to_string);
        identity.extend(origin);
    }
    identity.push(name.clone());
    let mut uid = text("/metadata/uid");
    if uid.is_empty() {
        let Digest(digest) = Digest::of(identity.join("\0").as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uid = uuid::Builder::from_custom_bytes(bytes)
            .into_uuid()
            .to_string();
    }
    Subject {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: Some(text("/metadata/namespace")).filter(|name| !name.is_empty()),
        name,
        uid,
        resource_version: text("/metadata/resourceVersion"),
    }
}

/// Judges objects as they come, so many at once, and keeps what was said in their order.
pub(super) async fn all(
    bench: &Arc<Bench>,
    jobs: impl Stream<Item = Job>,
    parallel: usize,
    talk: &Talk,
) -> Vec<Audited> {
    let judged = jobs.map(|job| {
        let bench = bench.clone();
        tokio::task::spawn_blocking(move || bench.judge(job))
    });
    let mut judged = pin!(judged.buffered(parallel));
    let mut all = Vec::new();
    while let Some(audited) = judged.next().await {
        talk.step();
        match audited {
            Ok(audited) => {
                if let Some(version) = &audited.wanted {
                    let Subject {
                        kind, api_version, ..
                    } = &audited.subject;
                    talk.note(&format!(
                        "{kind} of {api_version} is judged as it is written, though policies are about {version}"
                    ));
                }
                all.push(audited);
            }
            Err(error) => talk.trouble(&format!("judging an object: {error}")),
        }
    }
    all
}

/// Makes one of what was said of the same object in several versions.
pub(super) fn merge(all: Vec<Audited>) -> Vec<Audited> {
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    let mut merged: Vec<Audited> = Vec::with_capacity(all.len());
    for one in all {
        let key = (one.subject.uid.clone(), one.subject.kind.clone());
        match places.get(&key) {
            Some(place) => {
                let other = &mut merged[*place];
                other.passed.extend(one.passed);
                other.said.extend(one.said);
                other.skipped += one.skipped;
                other.checked = other.checked.take().or(one.checked);
            }
            None => {
                places.insert(key, merged.len());
                merged.push(one);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_never_stored_has_an_identity_that_stays() {
        let job = |object: Value| Job {
            served: Arc::new(Served {
                group: String::new(),
                resource: "pods".into(),
                kind: "Pod".into(),
                namespaced: true,
                versions: vec!["v1".into()],
            }),
            object,
            origin: None,
            version: None,
        };
        let uid = |metadata: Value| {
            let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
            subject(&job(object)).uid
        };
        let first = uid(json!({"name": "a", "namespace": "n"}));
        assert_eq!(
            first,
            uid(json!({"name": "a", "namespace": "n", "labels": {"a": "b"}}))
        );
        assert_ne!(first, uid(json!({"name": "a", "namespace": "m"})));
        assert_ne!(first, uid(json!({"name": "b", "namespace": "n"})));
        assert!(uuid::Uuid::parse_str(&first).is_ok(), "{first}");
        assert_eq!(uid(json!({"name": "a", "uid": "u"})), "u");
    }
}
