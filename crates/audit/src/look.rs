//! One object, looked at: load what is known, decide who is asked, ask, and write what they say. Looks
//! at the same object come one after the other; looks at different ones do not wait for each other.

use crate::agenda::Task;
use crate::auditor::{Auditor, State};
use crate::book::{Kept, is_absent, is_conflict, is_ending, revision};
use crate::ledger::{Entry, Place, Whereabouts};
use crate::metrics::Metrics;
use crate::note::{Key, Mark, Note, Pair, Stamp};
use crate::object::{Object, resource};
use crate::plan::{Plan, Question};
use crate::rest::{RESTS, Rests};
use crate::turns::Turns;
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

/// How long questions are answered before others get a turn.
const TURN: Duration = Duration::from_millis(50);

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

impl Job {
    /// The identity of its object, and where the object is if that is known.
    fn about(&self) -> (String, Option<(Place, Option<String>)>) {
        match self {
            Job::There(place, object) => {
                let at = (place.clone(), object.namespace());
                (object.uid().unwrap_or_default(), Some(at))
            }
            Job::Gone(uid)
            | Job::Left(uid)
            | Job::Again(uid)
            | Job::Retry(uid)
            | Job::Unseen(uid, _) => (uid.clone(), None),
        }
    }
}

/// What an answer is about, in all versions that are asked for.
struct Shown {
    subject: Subject,
    hash: u64,
    revision: u64,
    versions: BTreeMap<String, Arc<Request>>,
}

impl Auditor {
    /// Does what a job says. A panic is a failure of its object, which is audited again later.
    pub(crate) async fn work(&self, job: Job) {
        let (uid, place) = job.about();
        let work = self.do_job(job);
        let done = self.metrics.panics.catch("audit", "object", work).await;
        if let Err(panicked) = done {
            self.state().ledger.end(&uid, None);
            let is_known = self.state().ledger.get(&uid).is_some();
            let error = kube::Error::Service(panicked.into());
            let wait = self.failed(&uid, "auditing", &error);
            // An object that is not known yet is found in the list of its resource.
            if let Some((place, namespace)) = place.filter(|_| !is_known) {
                self.want(Task::Sweep(place, namespace), wait);
            }
        }
    }

    async fn do_job(&self, job: Job) {
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
                // Somebody may be interested again since it was handed over.
                if !self.state().is_left(&uid) {
                    return;
                }
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

    /// Takes note of a failure; says when the object is audited again.
    fn failed(&self, uid: &str, what: &str, error: &kube::Error) -> Duration {
        if is_ending(error) {
            return LONGEST;
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
        let wait = AGAIN
            .saturating_mul(1 << (failures - 1).min(6))
            .min(LONGEST);
        self.want(Task::Retry(uid.into()), wait);
        wait
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
        let target = Target {
            namespace: at.namespace.as_deref(),
            name: &at.name,
            labels: &labels,
        };
        let controller = self.controller.as_deref();
        {
            let mut state = self.state();
            if !state.ledger.see(&uid, &at, revision) {
                return Ok(());
            }
            // What is known of this very revision spares reading it.
            if state.is_settled(&uid, revision, &interest, target, controller) {
                state.failures.remove(&uid);
                return Ok(());
            }
        }
        let version = watched(&interest);
        let typed = resource(&interest.served, version);
        let value = object.into_value(&typed);
        let request = Request::create(&interest.served.resource, value);
        let hash = request.hash();
        let (plan, known, reported) = {
            let mut state = self.state();
            let Some(entry) = state.ledger.get(&uid) else {
                return Ok(());
            };
            let namespaces = state.view.namespaces();
            let plan = Plan::new(
                &interest,
                target,
                &namespaces,
                controller,
                hash,
                &entry.note,
            );
            if plan.is_done(hash, &entry.note) && !entry.stale {
                state.failures.remove(&uid);
                state.ledger.confirm(&uid, revision);
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
            revision,
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
        let mut state = self.state();
        state.ledger.forget(uid);
        state.failures.remove(uid);
        state.foreign.remove(uid);
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
        let unreachable = plan.stale();
        let (questions, versions) = (plan.questions, Arc::new(shown.versions));
        let answers = self.ask(at, questions, versions).await;
        self.heed_failures(&answers);
        for _ in 0..TRIES {
            let lines = before.as_ref().map(|before| &before.lines);
            let Composed {
                mut note,
                lines,
                stale,
            } = compose(&plan.kept, &answers, lines, known, now());
            let stale = stale.or_else(|| unreachable.clone());
            (note.object, note.revision) = (Some(shown.hash), shown.revision);
            if before.as_ref().is_some_and(Kept::is_foreign) {
                // What policies say is counted; the report stays whose it is.
                note.pairs.extend(&plan.kept);
                if !note.is_silent() {
                    self.give_way(&uid, at, note);
                    return Ok(());
                }
            }
            self.state().ledger.begin(&uid);
            let written = match (note.is_silent(), &before) {
                (true, None) if !reported => Ok(None),
                (true, _) => self.book.delete(namespace, &uid).await.map(|()| None),
                (false, before) => {
                    let (subject, stale) = (&shown.subject, stale.as_deref());
                    let before = before.as_ref();
                    let written = self.book.write(subject, lines, &note, stale, before).await;
                    written.map(Some)
                }
            };
            match written {
                Ok(revision) => {
                    if note.pairs != known.pairs {
                        self.told();
                    }
                    let is_stale = stale.is_some();
                    if self.state().reported(&uid, revision, note, is_stale) {
                        self.want(Task::Look(uid), Duration::ZERO);
                    }
                    return Ok(());
                }
                // Somebody else wrote or deleted it: what is there now is taken for what was before.
                Err(error) if is_conflict(&error) || before.is_some() && is_absent(&error) => {
                    self.state().ledger.end(&uid, None);
                    before = self.book.read(namespace, &uid).await?;
                    let foreign = before.as_ref().is_some_and(Kept::is_foreign);
                    if !foreign && plan.kept.values().any(|pair| pair.mark.is_said()) {
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

    /// Asks again, after a while, what policies could not be asked now, and servers that did not answer: no
    /// event says when they can.
    fn heed_failures(&self, answers: &[(Question, Option<Verdict>)]) {
        let mut state = self.state();
        for (question, answer) in answers {
            let key = question.key;
            let is_unanswered =
                question.prepared.is_remote() && Mark::of(answer.as_ref()) == Mark::Error;
            if !is_unanswered && !is_transient(answer.as_ref()) {
                state.unanswered.remove(&key);
                continue;
            }
            let tries = *state.unanswered.entry(key).or_default();
            let wait = AGAIN.saturating_mul(2 << tries.min(6)).min(LONGEST);
            self.want(Task::Recheck(key), wait);
        }
    }

    /// Takes note of what is said of an object on which somebody else reports.
    fn give_way(&self, uid: &str, at: &Whereabouts, note: Note) {
        self.metrics.reported("foreign");
        let mut state = self.state();
        state.reported(uid, None, note, false);
        if state.foreign.is_empty() {
            let (namespace, name) = (at.namespace.as_deref(), at.name.as_str());
            tracing::warn!(
                uid,
                namespace,
                name,
                "somebody else reports on an object under the same name; there may be more"
            );
        }
        state.foreign.insert(uid.into(), at.place.clone());
        drop(state);
        self.told();
    }

    /// Asks policies, on a thread that may block; only so many at once. Whoever takes long gives others
    /// a turn before the next question.
    async fn ask(
        &self,
        at: &Whereabouts,
        mut questions: Vec<Question>,
        versions: Arc<BTreeMap<String, Arc<Request>>>,
    ) -> Vec<(Question, Option<Verdict>)> {
        // Those that rest are asked later; what they would have said depends on nothing.
        let mut answers = Vec::new();
        questions.retain(|question| {
            let Question { key, stamp, .. } = *question;
            let owner = question.prepared.policy.namespace.as_deref();
            let left = self.rests.left_of(key, stamp, owner, Instant::now());
            if let Some(left) = left {
                self.want(Task::Sweep(at.place.clone(), None), left);
                let stamp = Stamp::NONE;
                let question = Question {
                    stamp,
                    ..question.clone()
                };
                answers.push((question, Some(Verdict::error(RESTS))));
            }
            left.is_none()
        });
        while !questions.is_empty() {
            let turn = self.turns.take(at.namespace.as_deref()).await;
            let bench = Bench {
                metrics: self.metrics.clone(),
                rests: self.rests.clone(),
                turns: self.turns.clone(),
                namespace: at.namespace.clone(),
                versions: versions.clone(),
            };
            let asked = questions.clone();
            let answered = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                bench.answer(asked)
            });
            match answered.await {
                Ok(answered) => {
                    questions.drain(..answered.len().min(questions.len()));
                    answers.extend(answered);
                }
                Err(_) => {
                    let broken = questions.drain(..).map(|one| (one, Some(broken())));
                    answers.extend(broken);
                }
            }
        }
        answers
    }
}

/// What questions about one object are answered with, on a thread that may block.
struct Bench {
    metrics: Metrics,
    rests: Arc<Rests>,
    turns: Arc<Turns>,
    namespace: Option<Arc<str>>,
    versions: Arc<BTreeMap<String, Arc<Request>>>,
}

impl Bench {
    /// Answers the first questions, at least one, for as long as a turn lasts.
    fn answer(&self, questions: Vec<Question>) -> Vec<(Question, Option<Verdict>)> {
        let turn = Instant::now();
        let mut answers = Vec::new();
        for question in questions {
            let answer = self.judge(&question);
            answers.push((question, answer));
            if turn.elapsed() >= TURN {
                break;
            }
        }
        answers
    }

    fn judge(&self, question: &Question) -> Option<Verdict> {
        let begun = Instant::now();
        let answer = std::panic::catch_unwind(AssertUnwindSafe(|| {
            match self.versions.get(&question.version) {
                Some(request) => question.prepared.ask(request),
                None => Some(Verdict::transient_error("the object could not be read")),
            }
        }));
        let answer = answer.unwrap_or_else(|panic| {
            let panics = &self.metrics.panics;
            panics.record("audit", "evaluate", &*panic);
            Some(broken())
        });
        let took = begun.elapsed();
        self.metrics.evaluated(outcome(answer.as_ref()), took);
        let slow = Mark::of(answer.as_ref()) == Mark::Error && took >= time(question);
        let now = Instant::now();
        let Question { key, stamp, .. } = *question;
        let owner = question.prepared.policy.namespace.as_deref();
        self.rests.note_of(key, stamp, owner, slow, now);
        if slow {
            self.turns.slowed(self.namespace.as_deref(), now);
        }
        answer
    }
}

/// How long a policy has for one object.
fn time(question: &Question) -> Duration {
    let members = question.prepared.policy.members();
    let times = members.iter().map(|(_, member)| member.time);
    times.min().unwrap_or_default()
}

fn broken() -> Verdict {
    Verdict::transient_error("the policy broke its evaluator; this is a defect of Muster")
}

/// Whether an answer is no result: the policy was not evaluated, and may be later.
fn is_transient(answer: Option<&Verdict>) -> bool {
    answer.is_some_and(|verdict| verdict.is_transient)
}

fn outcome(answer: Option<&Verdict>) -> &'static str {
    match Mark::of(answer) {
        _ if is_transient(answer) => "unavailable",
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

/// What a report says.
#[derive(Debug, Default)]
struct Composed {
    /// What it is made from.
    note: Note,
    lines: Vec<Line>,
    /// Why it is marked as stale, if a policy was not evaluated.
    stale: Option<String>,
}

/// What the report says now. A policy that was not evaluated has no result: its line from before stays, or
/// else an error says so. One that was evaluated and could not look is an error. In both cases the report is marked as stale, and the note has no stamp of the policy, so that it
/// is asked again, after a restart too.
fn compose(
    kept: &BTreeMap<Key, Pair>,
    answers: &[(Question, Option<Verdict>)],
    before: Option<&HashMap<Key, Line>>,
    known: &Note,
    now: i64,
) -> Composed {
    let before = |key: &Key| before.and_then(|lines| lines.get(key));
    let mut made = Composed::default();
    for (key, pair) in kept {
        if pair.mark.is_said() {
            // A line that is lost and that nobody can say again is not in the report.
            let Some(line) = before(key) else { continue };
            made.lines.push(line.clone());
        }
        made.note.pairs.insert(*key, *pair);
    }
    let mut missing = Vec::new();
    for (question, answer) in answers {
        let (key, policy) = (question.key, &question.prepared.policy);
        let line = |verdict: &Verdict| {
            let line = Line::new(policy, verdict, now);
            line.unless_said_by(before(&key))
        };
        let mut pair = Pair {
            stamp: question.stamp,
            mark: Mark::of(answer.as_ref()),
        };
        match answer {
            Some(verdict) if verdict.is_transient => {
                missing.push(format!("{}: {}", policy.unique_name(), verdict.message));
                pair.stamp = Stamp::NONE;
                // One that ran and could not look says nothing like what it said before.
                let said = known.pairs.get(&key);
                let said = said.filter(|pair| pair.mark.is_said() && !verdict.was_evaluated);
                match said.zip(before(&key)) {
                    Some((said, before)) => {
                        pair.mark = said.mark;
                        made.lines.push(before.clone());
                    }
                    None => made.lines.push(line(verdict)),
                }
            }
            Some(verdict) => made.lines.push(line(verdict)),
            None => {}
        }
        made.note.pairs.insert(key, pair);
    }
    made.stale = missing.first().map(|first| match missing.len() {
        1 => format!("not evaluated: {first}"),
        all => format!("not evaluated: {first}; {} more policies", all - 1),
    });
    made
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl State {
    /// Relies no longer on what is known of an object.
    fn doubt(&mut self, uid: &str) {
        self.ledger.doubt(uid);
    }

    /// Whether everything is as it was noted of this revision of an object.
    fn is_settled(
        &self,
        uid: &str,
        revision: u64,
        interest: &Interest,
        target: Target,
        controller: Option<&str>,
    ) -> bool {
        let Some(entry) = self.ledger.get(uid).filter(|entry| !entry.stale) else {
            return false;
        };
        let note = &entry.note;
        match note.object {
            // The revision 1 stands for one that is no number.
            Some(object) if revision > 1 && note.revision == revision => {
                let namespaces = self.view.namespaces();
                let plan = Plan::new(interest, target, &namespaces, controller, object, note);
                plan.is_done(object, note)
            }
            _ => false,
        }
    }

    /// Whether an object is known in which nobody is interested.
    fn is_left(&self, uid: &str) -> bool {
        let entry = self.ledger.get(uid);
        entry.is_some_and(|entry| self.view.interest(&entry.at.place).is_none())
    }

    /// Where an object is, and who is interested.
    fn place(&self, uid: &str) -> Option<(Whereabouts, Arc<Interest>)> {
        let at = self.ledger.get(uid)?.at.clone();
        let interest = self.view.interest(&at.place)?;
        Some((at, interest))
    }

    /// Takes note of a report that was written, in that revision, or deleted if there is none; says
    /// whether somebody else has touched it meanwhile.
    fn reported(&mut self, uid: &str, revision: Option<u64>, note: Note, is_stale: bool) -> bool {
        let touched = self.ledger.end(uid, Some(revision));
        self.failures.remove(uid);
        self.foreign.remove(uid);
        self.ledger.note(uid, note, is_stale);
        touched
    }

    /// Forgets an object that is gone; says where its report is, if it has one.
    fn forget(&mut self, uid: &str) -> Option<Whereabouts> {
        let at = self.ledger.get(uid).map(|entry| entry.at.clone());
        self.bury(uid);
        self.failures.remove(uid);
        self.foreign.remove(uid);
        match self.ledger.forget(uid) {
            true => at,
            false => None,
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreachable;
