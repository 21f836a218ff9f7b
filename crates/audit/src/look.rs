//! One object, looked at: load what is known, decide who is asked, ask, and write what they say. Looks
//! at the same object come one after the other; looks at different ones do not wait for each other.

use crate::agenda::Task;
use crate::auditor::{Auditor, State};
use crate::book::{is_absent, is_conflict, is_ending, revision};
use crate::ledger::{Entry, Place, Whereabouts};
use crate::note::{Key, Mark, Note, Pair, Stamp};
use crate::object::{Object, resource};
use crate::plan::{Plan, Question};
use crate::rest::RESTS;
use crate::view::Interest;
use kube::{Api, ResourceExt};
use muster_policy::report::{Line, Subject};
use muster_policy::{Request, Target, Verdict};
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// The longest time until it is tried again.
const LONGEST: Duration = Duration::from_secs(300);
/// How often a report that others write too is written on top of what they wrote, before it waits.
const TRIES: usize = 5;

/// A reason to look at an object.
#[derive(Debug)]
pub(crate) enum Job {
    /// It is there, like this.
    There(Place, Box<Object>),
    /// It is gone.
    Gone(String),
    /// Nobody is interested in it any longer.
    Left(String),
    /// It has to be looked at again, whatever is known.
    Again(String),
    /// It has to be looked at again, as something could not be done.
    Retry(String),
    /// It cannot be looked at, and why.
    Unseen(String, String),
}

/// What an answer is about, in all versions that are asked for.
struct Shown {
    subject: Subject,
    hash: u64,
    versions: BTreeMap<String, Arc<Request>>,
}

impl Auditor {
    /// Does what a job says.
    pub(crate) async fn work(&self, job: Job) {
        match job {
            Job::There(place, object) => {
                self.metrics.looked();
                let uid = object.uid().unwrap_or_default();
                if let Err(error) = self.look(&place, *object).await {
                    self.failed(&uid, "auditing", &error);
                }
            }
            Job::Gone(uid) => {
                let entry = self.state().forget(&uid);
                if let Some(at) = entry
                    && let Err(error) = self.book.delete(at.namespace.as_deref(), &uid).await
                {
                    tracing::warn!(%error, uid, "deleting the report on something that is gone");
                    self.state().mourn(&uid, at);
                    self.want(Task::Retry(uid), AGAIN);
                }
            }
            Job::Left(uid) => {
                if let Err(error) = self.leave_alone(&uid).await {
                    // Whoever settles next finds it again.
                    tracing::warn!(%error, uid, "deleting a report that nobody wants");
                }
            }
            Job::Again(uid) => {
                self.state().doubt(&uid);
                if let Err(error) = self.look_again(&uid).await {
                    self.failed(&uid, "looking again", &error);
                }
            }
            Job::Retry(uid) => {
                if let Err(error) = self.look_again(&uid).await {
                    self.failed(&uid, "trying again", &error);
                }
            }
            Job::Unseen(uid, why) => {
                let at = self.state().ledger.get(&uid).map(|entry| entry.at.clone());
                let Some(at) = at else { return };
                self.state().ledger.begin(&uid);
                let doubted = self.book.doubt(at.namespace.as_deref(), &uid, &why).await;
                let mut state = self.state();
                match doubted {
                    Ok(revision) => {
                        let touched = state.ledger.end(&uid, Some(Some(revision)));
                        state.ledger.mark_stale(&uid);
                        if touched {
                            self.want(Task::Look(uid), AGAIN);
                        }
                    }
                    Err(error) => {
                        state.ledger.end(&uid, None);
                        tracing::warn!(%error, uid, "saying that a report is not current");
                    }
                }
            }
        }
    }

    fn failed(&self, uid: &str, what: &str, error: &kube::Error) {
        if is_ending(error) {
            return;
        }
        self.metrics.reported("failed");
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(uid.into()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        if failures == 1 {
            tracing::warn!(%error, uid, "{what}");
        }
        let wait = AGAIN.saturating_mul(1 << (failures - 1).min(6));
        self.want(Task::Retry(uid.into()), wait.min(LONGEST));
    }

    /// Fetches an object and looks at it.
    async fn look_again(&self, uid: &str) -> kube::Result<()> {
        let mourned = self.state().mourned(uid);
        if let Some(at) = mourned {
            self.book.delete(at.namespace.as_deref(), uid).await?;
            self.state().bury(uid);
            return Ok(());
        }
        let known = self.state().place(uid);
        let Some((at, interest)) = known else {
            return Ok(());
        };
        let version = watched(&interest);
        match self.fetch(&interest, &at, version).await? {
            Some(object) if object.uid().as_deref() == Some(uid) => {
                self.look(&at.place, object).await
            }
            _ => {
                let gone = self.state().forget(uid);
                match gone {
                    Some(at) => self.book.delete(at.namespace.as_deref(), uid).await,
                    None => Ok(()),
                }
            }
        }
    }

    async fn fetch(
        &self,
        interest: &Interest,
        at: &Whereabouts,
        version: &str,
    ) -> kube::Result<Option<Object>> {
        let resource = resource(&interest.served, version);
        let client = self.cluster.clone();
        let api: Api<Object> = match &at.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        self.pace.turn().await;
        self.metrics.asked("get");
        match api.get(&at.name).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                // Only who names the object knows that it is gone; the resource may not be served.
                let details = status.details.as_ref();
                if details.is_some_and(|details| details.name == at.name) {
                    return Ok(None);
                }
                self.want(Task::Discover, Duration::from_secs(1));
                Err(kube::Error::Api(status))
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at an object that is there.
    async fn look(&self, place: &Place, object: Object) -> kube::Result<()> {
        let Some(uid) = object.uid().filter(|uid| self.scope.shard.has(uid)) else {
            return Ok(());
        };
        let at = Whereabouts {
            place: place.clone(),
            namespace: object.namespace().map(Into::into),
            name: object.name_any(),
        };
        let (labels, revision) = (object.labels(), revision(&object));
        let interest = {
            let state = self.state();
            match state.view.interest(place) {
                Some(interest) if !state.is_mourned(&uid) => interest,
                _ => return Ok(()),
            }
        };
        // A namespace is in itself.
        let within = match &at.namespace {
            None if place.0.is_empty() && place.1 == "namespaces" => Some(at.name.as_str()),
            namespace => namespace.as_deref(),
        };
        if !self.scope.reaches(within) {
            // It may have been in scope when its report was written.
            return self.leave_alone(&uid).await;
        }
        let version = watched(&interest);
        let typed = resource(&interest.served, version);
        let value = object.into_value(&typed);
        let request = Request::create(&interest.served.resource, value);
        let hash = request.hash();
        let (plan, known, reported) = {
            let mut state = self.state();
            if !state.ledger.see(&uid, &at, revision) {
                return Ok(());
            }
            let Some(entry) = state.ledger.get(&uid) else {
                return Ok(());
            };
            let target = Target {
                namespace: at.namespace.as_deref(),
                name: &at.name,
                labels: &labels,
            };
            let namespaces = state.view.namespaces();
            let controller = self.controller.as_deref();
            let plan = Plan::new(
                &interest,
                target,
                &namespaces,
                controller,
                hash,
                &entry.note,
            );
            if plan.is_done(hash, &entry.note) && !entry.stale {
                return Ok(());
            }
            (plan, entry.note.clone(), entry.has_report())
        };
        let shown = Shown {
            subject: Subject {
                api_version: typed.api_version.clone(),
                kind: typed.kind.clone(),
                namespace: at.namespace.as_deref().map(str::to_owned),
                name: at.name.clone(),
                uid,
                resource_version: revision.to_string(),
            },
            hash,
            versions: BTreeMap::from([(version.to_owned(), Arc::new(request))]),
        };
        self.settle(&interest, &at, shown, plan, &known, reported)
            .await
    }

    /// Deletes the report on an object that is not audited, if there is one.
    async fn leave_alone(&self, uid: &str) -> kube::Result<()> {
        let at = self.state().ledger.get(uid).map(|entry| entry.at.clone());
        let Some(at) = at else { return Ok(()) };
        self.book.delete(at.namespace.as_deref(), uid).await?;
        self.state().ledger.forget(uid);
        Ok(())
    }

    /// Asks who is to be asked, and writes the report.
    async fn settle(
        &self,
        interest: &Interest,
        at: &Whereabouts,
        mut shown: Shown,
        mut plan: Plan,
        known: &Note,
        reported: bool,
    ) -> kube::Result<()> {
        let uid = shown.subject.uid.clone();
        let namespace = at.namespace.as_deref();
        let mut before = match reported {
            true => self.book.read(namespace, &uid).await?,
            false => None,
        };
        let written = self.state().ledger.get(&uid).and_then(Entry::written);
        plan.ask_again(|question| {
            // What somebody else wrote there is nobody's answer.
            let ours = before
                .as_ref()
                .filter(|kept| Some(kept.revision()) == written);
            ours.is_none_or(|kept| !kept.lines.contains_key(&question.key))
        });
        for question in &plan.questions {
            if !shown.versions.contains_key(&question.version) {
                let Some(object) = self.fetch(interest, at, &question.version).await? else {
                    // It is gone, which its watch will tell.
                    return Ok(());
                };
                let typed = resource(&interest.served, &question.version);
                let request = Request::create(&typed.plural, object.into_value(&typed));
                let version = question.version.clone();
                shown.versions.insert(version, Arc::new(request));
            }
        }
        let (questions, versions) = (plan.questions, shown.versions);
        let answers = self.ask(&at.place, questions, versions).await;
        for _ in 0..TRIES {
            let lines = before.as_ref().map(|before| &before.lines);
            let (note, lines) = compose(shown.hash, &plan.kept, &answers, lines, now());
            self.state().ledger.begin(&uid);
            let written = match (note.is_silent(), &before) {
                (true, None) if !reported => Ok(None),
                (true, _) => self.book.delete(namespace, &uid).await.map(|()| None),
                (false, before) => {
                    let before = before.as_ref();
                    let written = self.book.write(&shown.subject, lines, &note, before).await;
                    written.map(Some)
                }
            };
            match written {
                Ok(revision) => {
                    if note.pairs != known.pairs {
                        self.told();
                    }
                    if self.state().reported(&uid, revision, note) {
                        self.want(Task::Look(uid), Duration::ZERO);
                    }
                    return Ok(());
                }
                // Somebody else wrote or deleted it: what is there now is taken for what was before.
                Err(error) if is_conflict(&error) || before.is_some() && is_absent(&error) => {
                    self.state().ledger.end(&uid, None);
                    before = self.book.read(namespace, &uid).await?;
                    if plan.kept.values().any(|pair| pair.mark.is_said()) {
                        // Their lines are not to be relied on.
                        self.want(Task::Look(uid), Duration::ZERO);
                        return Ok(());
                    }
                }
                Err(error) => {
                    self.state().ledger.end(&uid, None);
                    return Err(error);
                }
            }
        }
        self.want(Task::Look(uid), AGAIN);
        Ok(())
    }

    /// Asks policies, on a thread that may block; only so many objects at once.
    async fn ask(
        &self,
        place: &Place,
        mut questions: Vec<Question>,
        versions: BTreeMap<String, Arc<Request>>,
    ) -> Vec<(Question, Option<Verdict>)> {
        // Those that rest are asked later; what they would have said depends on nothing.
        let mut answers = Vec::new();
        questions.retain(|question| {
            let left = self
                .rests
                .left(question.key, question.stamp, Instant::now());
            if let Some(left) = left {
                self.want(Task::Sweep(place.clone(), None), left);
                let stamp = Stamp::new(0, 0);
                let question = Question {
                    stamp,
                    ..question.clone()
                };
                answers.push((question, Some(Verdict::error(RESTS))));
            }
            left.is_none()
        });
        if questions.is_empty() {
            return answers;
        }
        // It is never closed.
        let permit = self.judging.clone().acquire_owned().await;
        let (metrics, rests) = (self.metrics.clone(), self.rests.clone());
        let asked = questions.clone();
        let answered = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let answers = questions.into_iter().map(|question| {
                let begun = Instant::now();
                let answer = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    match versions.get(&question.version) {
                        Some(request) => question.prepared.ask(request),
                        None => Some(Verdict::error("the object could not be read")),
                    }
                }));
                let answer = answer.unwrap_or_else(|_| Some(broken()));
                let took = begun.elapsed();
                metrics.evaluated(outcome(answer.as_ref()), took);
                let slow = Mark::of(answer.as_ref()) == Mark::Error && took >= time(&question);
                rests.note(question.key, question.stamp, slow, Instant::now());
                (question, answer)
            });
            answers.collect::<Vec<_>>()
        });
        answers.extend(answered.await.unwrap_or_else(|_| {
            let broken = asked.into_iter().map(|question| (question, Some(broken())));
            broken.collect()
        }));
        answers
    }
}

/// How long a policy has for one object.
fn time(question: &Question) -> Duration {
    let members = question.prepared.policy.members();
    let times = members.iter().map(|(_, member)| member.time);
    times.min().unwrap_or_default()
}

fn broken() -> Verdict {
    Verdict::error("the policy broke its evaluator; this is a defect of Muster")
}

fn outcome(answer: Option<&Verdict>) -> &'static str {
    match Mark::of(answer) {
        Mark::Pass => "pass",
        Mark::Fail => "fail",
        Mark::Error => "error",
        Mark::Mutated => "mutated",
        Mark::Skip | Mark::Unmet => "unmet",
    }
}

/// The version that is watched: the one that the server prefers.
pub(crate) fn watched(interest: &Interest) -> &str {
    interest.served.versions.first().map_or("", String::as_str)
}

/// What the report says now, and what it was made from.
fn compose(
    object: u64,
    kept: &BTreeMap<Key, Pair>,
    answers: &[(Question, Option<Verdict>)],
    before: Option<&HashMap<Key, Line>>,
    now: i64,
) -> (Note, Vec<Line>) {
    let before = |key: &Key| before.and_then(|lines| lines.get(key));
    let mut note = Note {
        object: Some(object),
        pairs: BTreeMap::new(),
    };
    let mut lines = Vec::new();
    for (key, pair) in kept {
        if pair.mark.is_said() {
            // A line that is lost and that nobody can say again is not in the report.
            let Some(line) = before(key) else { continue };
            lines.push(line.clone());
        }
        note.pairs.insert(*key, *pair);
    }
    for (question, answer) in answers {
        let pair = Pair {
            stamp: question.stamp,
            mark: Mark::of(answer.as_ref()),
        };
        note.pairs.insert(question.key, pair);
        if let Some(verdict) = answer {
            let line = Line::new(&question.prepared.policy, verdict, now);
            lines.push(line.unless_said_by(before(&question.key)));
        }
    }
    (note, lines)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl State {
    /// Relies no longer on what is known of an object.
    fn doubt(&mut self, uid: &str) {
        self.ledger.doubt(uid);
    }

    /// Where an object is, and who is interested.
    fn place(&self, uid: &str) -> Option<(Whereabouts, Arc<Interest>)> {
        let at = self.ledger.get(uid)?.at.clone();
        let interest = self.view.interest(&at.place)?;
        Some((at, interest))
    }

    /// Takes note of a report that was written, in that revision, or deleted if there is none; says
    /// whether somebody else has touched it meanwhile.
    fn reported(&mut self, uid: &str, revision: Option<u64>, note: Note) -> bool {
        let touched = self.ledger.end(uid, Some(revision));
        self.failures.remove(uid);
        self.ledger.note(uid, note, false);
        touched
    }

    /// Forgets an object that is gone; says where its report is, if it has one.
    fn forget(&mut self, uid: &str) -> Option<Whereabouts> {
        let at = self.ledger.get(uid).map(|entry| entry.at.clone());
        self.bury(uid);
        self.failures.remove(uid);
        match self.ledger.forget(uid) {
            true => at,
            false => None,
        }
    }
}
