//! One object, looked at: load what is known, decide by hashes, judge, and write the report or take it
//! away. Looks at the same object come one after the other. What was not evaluated is retried; what happens
//! to the report meanwhile is for [`super::stale`].

use super::shelf::Put;
use super::stale::Looked;
use super::{COMPONENT, ConfigAuditor, Desk, Kept, ReportName, Task, now};
use crate::book::{is_absent, is_ending};
use crate::ledger::{Place, Whereabouts};
use crate::object::{Object, resource};
use crate::resources::refusal;
use kube::ResourceExt;
use kube::api::ListParams;
use muster_checks::report::{self, Action, Basis, Hashes, Subject, Writing};
use muster_checks::{sheet, subject};
use serde_json::Value;
use std::panic::resume_unwind;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_secs(5);
/// The longest time until it is tried again.
const LONGEST: Duration = Duration::from_secs(300);
/// The time until an errand that panicked is run again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Why a report is stale whose object cannot be evaluated because of a defect of Muster.
const PANICKED: &str = "not evaluated: the evaluation panicked; this is a defect of Muster";
/// How many objects are asked for at once.
const PAGE: u32 = 250;

/// A reason to look at an object.
#[derive(Debug)]
pub(super) enum Job {
    /// It is there, like this.
    There(Place, Box<Object>),
    /// It has to be looked at again, or is gone.
    Again(Whereabouts),
    /// Nobody has anything to say about it any longer.
    Left(Whereabouts),
}

impl ConfigAuditor {
    /// Does what a job says. A panic is a failure of its object, which is looked at again later.
    pub(super) async fn work(&self, job: Job) {
        let at = match &job {
            Job::There(place, object) => whereabouts(place, object),
            Job::Again(at) | Job::Left(at) => at.clone(),
        };
        let panics = &self.settings.metrics.panics;
        let work = self.do_job(&at, job);
        let done = panics.catch(COMPONENT, "object", work).await;
        let done = done.unwrap_or_else(|panicked| Err(kube::Error::Service(panicked.into())));
        match done {
            Ok(Looked::Done) => {
                self.state().failures.remove(&at);
            }
            Ok(Looked::Incomplete(why)) => self.incomplete(at, &why),
            Err(error) if is_ending(&error) => {}
            Err(error) => self.failed(at, &error),
        }
    }

    async fn do_job(&self, at: &Whereabouts, job: Job) -> kube::Result<Looked> {
        match job {
            Job::There(_, object) => self.look(at, *object).await,
            Job::Again(_) => self.look_again(at).await,
            Job::Left(_) => {
                let desk = self.state().desks.get(&at.place).cloned();
                match desk {
                    // The kind has checks again.
                    Some(desk) if desk.sheet.is_some() => Ok(Looked::Done),
                    _ => self.take_away(at).await,
                }
            }
        }
    }

    fn failed(&self, at: Whereabouts, error: &kube::Error) {
        self.settings.metrics.reported("failed");
        if self.retry(&at) == 1 {
            let (resource, name) = (&at.place.1, &at.name);
            tracing::warn!(%error, resource, name, "checking an object");
        }
    }

    /// Has an object looked at again, later each time; says how often in a row.
    pub(super) fn retry(&self, at: &Whereabouts) -> u32 {
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(at.clone()).or_default();
            *failures = failures.saturating_add(1);
            *failures
        };
        let wait = AGAIN.saturating_mul(1 << (failures - 1).min(6));
        self.want(Task::Look(at.clone()), wait.min(LONGEST));
        failures
    }

    /// Fetches an object and looks at it.
    async fn look_again(&self, at: &Whereabouts) -> kube::Result<Looked> {
        let Some(desk) = self.state().desks.get(&at.place).cloned() else {
            return Ok(Looked::Done);
        };
        self.pace.turn().await;
        self.settings.metrics.asked("get");
        match self
            .objects(&desk.served, at.namespace.as_deref())
            .get(&at.name)
            .await
        {
            Ok(object) => self.look(at, object).await,
            // Only who names the object knows that it is gone; the resource may not be served.
            Err(kube::Error::Api(status))
                if status.code == 404
                    && status
                        .details
                        .as_ref()
                        .is_some_and(|details| details.name == at.name) =>
            {
                self.take_away(at).await
            }
            Err(error) => {
                if is_absent(&error) {
                    self.want(Task::Discover, Duration::from_secs(1));
                }
                Err(error)
            }
        }
    }

    /// Looks at an object that is there.
    async fn look(&self, at: &Whereabouts, object: Object) -> kube::Result<Looked> {
        let uid = object.uid().unwrap_or_default();
        if !self.settings.scope.shard.has(&uid) {
            return Ok(Looked::Done);
        }
        let Some(desk) = self.state().desks.get(&at.place).cloned() else {
            return Ok(Looked::Done);
        };
        let subject = subject_of(&desk, at, &uid);
        let name = report_name(&subject);
        let value = object.into_value(&served_as(&desk));
        let is_judged = self.is_judged(at, &desk, &value);
        let judged = sheet::Object::new(value, self.settings.exceptions);
        let wanted = desk
            .sheet
            .as_ref()
            .filter(|_| is_judged)
            .map(|sheet| Hashes {
                spec: judged.hash(now()),
                config: sheet.report_hash(self.settings.all),
            });
        let kept = self.state().reports.get(&name).cloned();
        // A report on an earlier object of that name is none on this one.
        let current = kept.as_ref().filter(|kept| kept.uid == uid);
        let action = match (&kept, current) {
            (Some(_), None) if wanted.is_none() => Action::Delete,
            _ => report::decide(current.and_then(Kept::current_hashes), wanted.as_ref()),
        };
        // One whose hashes are in doubt is there all the same.
        let action = match (action, &wanted, &kept) {
            (Action::Nothing, None, Some(_)) => Action::Delete,
            (action, ..) => action,
        };
        if let Some(turn) = judged.turns(now()).filter(|_| is_judged) {
            let wait = Duration::try_from(turn.duration_since(now())).unwrap_or_default();
            self.want(Task::Look(at.clone()), wait);
        }
        match (action, desk.sheet, wanted) {
            (Action::Judge, Some(sheet), Some(hashes)) => {
                self.settings
                    .metrics
                    .evaluated(&desk.kind.kind, sheet.policies().len());
                let (kind, by) = (desk.kind.clone(), sheet.hash().to_owned());
                let work = move || sheet.judge(&kind, &judged, now());
                // It is never closed.
                let turn = self.judging.acquire().await;
                let findings = tokio::task::spawn_blocking(work).await;
                drop(turn);
                let findings = match findings.map_err(JoinError::try_into_panic) {
                    Ok(findings) => findings,
                    // It is caught with every other panic of this object.
                    Err(Ok(panic)) => {
                        if let Some(before) = current.filter(|kept| kept.stays()) {
                            self.mark_stale(&name, before, PANICKED).await?;
                        }
                        resume_unwind(panic)
                    }
                    Err(Err(error)) => return Err(kube::Error::Service(error.into())),
                };
                let incomplete = report::incomplete(&findings);
                if let Some(why) = &incomplete
                    && let Some(before) = current.filter(|kept| kept.stays())
                {
                    self.mark_stale(&name, before, why).await?;
                    self.doubt_judge(at, &by);
                    return Ok(Looked::Incomplete(why.clone()));
                }
                let basis = match &incomplete {
                    Some(why) => Basis::Incomplete(why),
                    None => Basis::Complete(&hashes),
                };
                let now = now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                let writing = Writing {
                    basis,
                    version: env!("CARGO_PKG_VERSION"),
                    now: &now,
                    all: self.settings.all,
                };
                let written = report::report(&subject, &findings, &writing);
                let hashes = incomplete.is_none().then_some(hashes);
                self.write(name, &subject, hashes, written, kept).await?;
                self.doubt_judge(at, &by);
                Ok(incomplete.map_or(Looked::Done, Looked::Incomplete))
            }
            (Action::Delete, ..) => self.take_away(at).await,
            _ => Ok(Looked::Done),
        }
    }

    /// Has an object looked at again if who judged it does so no longer. Whoever settled that meanwhile
    /// knew nothing of a report that was just being written.
    fn doubt_judge(&self, at: &Whereabouts, by: &str) {
        let state = self.state();
        let sheet = state.desks.get(&at.place).map(|desk| &desk.sheet);
        let is_current = sheet
            .and_then(Option::as_ref)
            .is_some_and(|sheet| sheet.hash() == by);
        drop(state);
        if !is_current {
            self.want(Task::Look(at.clone()), Duration::ZERO);
        }
    }

    /// Whether an object is judged at all.
    fn is_judged(&self, at: &Whereabouts, desk: &Desk, value: &Value) -> bool {
        let Some(sheet) = &desk.sheet else {
            return false;
        };
        // A namespace is in itself.
        let within = match &at.namespace {
            None if at.place.0.is_empty() && at.place.1 == "namespaces" => Some(at.name.as_str()),
            namespace => namespace.as_deref(),
        };
        if !self.settings.scope.reaches(within) {
            return false;
        }
        let state = self.state();
        let labels = &self.settings.skip_labels;
        let left = subject::is_left(value, &desk.kind, sheet, labels, |kind| {
            state.sheet_of(kind)
        });
        left.is_none()
    }

    /// Writes a report, which is incomplete if it has no hashes.
    async fn write(
        &self,
        name: ReportName,
        subject: &Subject,
        hashes: Option<Hashes>,
        written: Value,
        before: Option<Kept>,
    ) -> kube::Result<()> {
        let before = before.map(|kept| kept.seen.max(kept.written));
        match self.shelf.put(written, before).await? {
            Put::Written(revision) => {
                let (group, _) = subject.api_version.split_once('/').unwrap_or_default();
                let kept = Kept {
                    is_stale: hashes.is_none(),
                    is_revisited: false,
                    hashes,
                    group: group.into(),
                    kind: subject.kind.clone(),
                    name: subject.name.clone(),
                    uid: subject.uid.clone(),
                    written: revision,
                    seen: revision,
                };
                self.state().reports.insert(name, kept);
            }
            Put::Foreign => {
                let (namespace, name) = name;
                tracing::debug!(namespace, name, "somebody else keeps this report");
            }
        }
        Ok(())
    }

    /// Deletes the report on an object, if there is one.
    async fn take_away(&self, at: &Whereabouts) -> kube::Result<Looked> {
        let Some(desk) = self.state().desks.get(&at.place).cloned() else {
            return Ok(Looked::Done);
        };
        let name = report_name(&subject_of(&desk, at, ""));
        let Some(kept) = self.state().reports.remove(&name) else {
            return Ok(Looked::Done);
        };
        let deleted = self.shelf.delete(name.0.as_deref(), &name.1).await;
        if deleted.is_err() {
            // It is still there, and has to go.
            self.state().reports.entry(name).or_insert(kept);
        }
        deleted.map(|()| Looked::Done)
    }

    pub(super) async fn there(&self, place: &Place, object: Object) {
        let name = object.name_any();
        let job = Job::There(place.clone(), Box::new(object));
        self.crew.hand(&name, job).await;
    }

    /// Runs errands until `stop`.
    pub(super) async fn run_errands(&self, stop: &CancellationToken) {
        loop {
            let errand = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                errand = self.errands.next() => errand,
            };
            let again = errand.clone();
            let work = async {
                match errand {
                    Task::Sweep(place) => self.sweep(place).await,
                    Task::Look(at) => self.crew.hand(&at.name.clone(), Job::Again(at)).await,
                    Task::Doubt(name) => self.doubt(&name),
                    Task::Revisit => self.revisit().await,
                    _ => {}
                }
            };
            let panics = &self.settings.metrics.panics;
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                done = panics.catch(COMPONENT, "resource", work) => {
                    if done.is_err() {
                        self.want(again, RETRY_AFTER);
                    }
                }
            }
        }
    }

    /// Looks at all objects of a resource.
    async fn sweep(&self, place: Place) {
        let Some(desk) = self.state().desks.get(&place).cloned() else {
            return;
        };
        for part in self.parts(&desk.served) {
            let api = self.objects(&desk.served, part);
            let mut parameters = ListParams::default().limit(PAGE);
            loop {
                self.pace.turn().await;
                self.settings.metrics.asked("list");
                let page = match tokio::time::timeout(PATIENCE, api.list(&parameters)).await {
                    Ok(Ok(page)) => page,
                    Ok(Err(error)) => {
                        self.unlisted(&place, part, Some(&refusal(&error)));
                        return self.want(Task::Sweep(place), AGAIN);
                    }
                    Err(_) => {
                        self.unlisted(&place, part, Some("no answer in time"));
                        return self.want(Task::Sweep(place), AGAIN);
                    }
                };
                for object in page.items {
                    self.there(&place, object).await;
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => parameters = parameters.continue_token(&token),
                    None => break,
                }
            }
            self.unlisted(&place, part, None);
        }
    }
}

/// Where an object is.
pub(super) fn whereabouts(place: &Place, object: &Object) -> Whereabouts {
    Whereabouts {
        place: place.clone(),
        namespace: object.namespace().map(Into::into),
        name: object.name_any(),
    }
}

fn served_as(desk: &Desk) -> kube::api::ApiResource {
    let version = desk.served.versions.first().map_or("", String::as_str);
    resource(&desk.served, version)
}

fn subject_of(desk: &Desk, at: &Whereabouts, uid: &str) -> Subject {
    Subject {
        api_version: served_as(desk).api_version,
        kind: desk.kind.kind.clone(),
        namespace: at.namespace.as_deref().map(str::to_owned),
        name: at.name.clone(),
        uid: uid.into(),
    }
}

fn report_name(subject: &Subject) -> ReportName {
    (subject.namespace.clone(), subject.report_name())
}

#[cfg(test)]
mod panics;
#[cfg(test)]
mod tests;
