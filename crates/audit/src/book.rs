//! Reports as they are kept: read, written and deleted through the API, each on top of exactly what was
//! read. What others added to a report (labels, annotations) stays; and a report that is another's is
//! neither written nor deleted, as other tools name theirs by the UID of the object too.

use crate::metrics::Metrics;
use crate::note::{INPUTS, Key, Note, STALE};
use crate::pace::Pace;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Api, Client, ResourceExt};
use muster_policy::report::{Format, Line, MANAGED_BY, SOURCE, Subject, report};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

/// The name under which our fields are owned.
pub(crate) const MANAGER: &str = "muster-audit";

/// How often a report that others write is tried to be deleted, before it waits.
const TRIES: usize = 5;

/// Where reports are kept.
pub(crate) struct Book {
    client: Client,
    format: Format,
    /// The version in which they are served, once that is known.
    version: OnceLock<&'static str>,
    pace: Arc<Pace>,
    metrics: Metrics,
}

/// A report as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    object: DynamicObject,
    /// Its lines, by policy.
    pub(crate) lines: HashMap<Key, Line>,
}

impl Kept {
    /// The revision that was read.
    pub(crate) fn revision(&self) -> u64 {
        revision(&self.object)
    }

    /// Whether somebody else writes it.
    pub(crate) fn is_foreign(&self) -> bool {
        is_foreign(&self.object.metadata)
    }

    fn read(object: DynamicObject) -> Kept {
        let results = object.data["results"].as_array().into_iter().flatten();
        let lines = results.filter_map(|line| Line::deserialize(line).ok());
        let lines = lines.map(|line| (Key::of(line.policy_uid()), line));
        Kept {
            lines: lines.collect(),
            object,
        }
    }
}

/// The revision of an object, as a number that grows.
pub(crate) fn revision(object: &impl ResourceExt) -> u64 {
    let revision = object.resource_version();
    revision.and_then(|text| text.parse().ok()).unwrap_or(1)
}

impl Book {
    pub(crate) fn new(client: Client, format: Format, pace: Arc<Pace>, metrics: Metrics) -> Book {
        Book {
            client,
            format,
            version: OnceLock::new(),
            pace,
            metrics,
        }
    }

    /// Finds out in which version reports are served, the newest that we know; whether they are.
    pub(crate) async fn find_version(&self) -> kube::Result<bool> {
        if self.version.get().is_some() {
            return Ok(true);
        }
        let (group, _) = self.format.group_version();
        for version in self.format.versions() {
            let api_version = format!("{group}/{version}");
            let served = match self.client.list_api_group_resources(&api_version).await {
                Ok(list) => list.resources,
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(error),
            };
            let has = |namespaced| {
                let (_, plural) = self.format.kind(namespaced);
                served.iter().any(|one| one.name == plural)
            };
            if has(true) && has(false) {
                let _ = self.version.set(*version);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The resource of reports about objects in namespaces, or about others.
    pub(crate) fn resource(&self, namespaced: bool) -> ApiResource {
        let (group, newest) = self.format.group_version();
        let version = self.version.get().copied().unwrap_or(newest);
        let (kind, plural) = self.format.kind(namespaced);
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: format!("{group}/{version}"),
            kind: kind.into(),
            plural: plural.into(),
        }
    }

    fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = self.resource(namespace.is_some());
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn turn(&self, verb: &'static str) {
        self.pace.turn().await;
        self.metrics.asked(verb);
    }

    /// The report about an object.
    pub(crate) async fn read(
        &self,
        namespace: Option<&str>,
        uid: &str,
    ) -> kube::Result<Option<Kept>> {
        self.turn("get").await;
        let report = self.api(namespace).get_opt(uid).await?;
        Ok(report.map(Kept::read))
    }

    /// Writes a report over what was read, with the reason if it is stale; says in which revision it is now.
    pub(crate) async fn write(
        &self,
        subject: &Subject,
        lines: Vec<Line>,
        note: &Note,
        stale: Option<&str>,
        before: Option<&Kept>,
    ) -> kube::Result<u64> {
        let mut inputs = BTreeMap::from([(INPUTS.to_owned(), note.write())]);
        inputs.extend(stale.map(|why| (STALE.to_owned(), why.to_owned())));
        let mut written = report(self.format, subject, lines, note.skipped(), &inputs);
        let resource = self.resource(subject.namespace.is_some());
        written["apiVersion"] = resource.api_version.into();
        let written = serde_json::from_value(written).map_err(kube::Error::SerdeError)?;
        let api = self.api(subject.namespace.as_deref());
        let parameters = PostParams {
            field_manager: Some(MANAGER.into()),
            ..PostParams::default()
        };
        let Some(before) = before else {
            self.turn("create").await;
            let created = api.create(&parameters, &written).await?;
            self.metrics.reported("written");
            return Ok(revision(&created));
        };
        let written = over(&before.object, written);
        if is_same(&before.object, &written) {
            return Ok(revision(&before.object));
        }
        self.turn("update").await;
        let replaced = api.replace(&subject.uid, &parameters, &written).await?;
        self.metrics.reported("written");
        Ok(revision(&replaced))
    }

    /// Deletes the report about an object, if there is one and it is ours.
    pub(crate) async fn delete(&self, namespace: Option<&str>, uid: &str) -> kube::Result<()> {
        let api = self.api(namespace);
        let mut tries = TRIES;
        loop {
            self.turn("get").await;
            let Some(report) = api.get_metadata_opt(uid).await? else {
                return Ok(());
            };
            if is_foreign(&report.metadata) {
                return Ok(());
            }
            self.turn("delete").await;
            let exactly = Preconditions {
                uid: report.metadata.uid,
                resource_version: report.metadata.resource_version,
            };
            let parameters = DeleteParams::background().preconditions(exactly);
            tries -= 1;
            match api.delete(uid, &parameters).await {
                Ok(_) => {
                    self.metrics.reported("deleted");
                    return Ok(());
                }
                Err(error) if is_absent(&error) => return Ok(()),
                // Somebody has written it meanwhile.
                Err(error) if is_conflict(&error) && tries > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Says on a report that it is not current, and why; says in which revision it is now.
    pub(crate) async fn doubt(
        &self,
        namespace: Option<&str>,
        uid: &str,
        why: &str,
    ) -> kube::Result<u64> {
        self.turn("patch").await;
        let patch = json!({"metadata": {"annotations": {STALE: why}}});
        let parameters = PatchParams::apply(MANAGER);
        let api = self.api(namespace);
        let patched = api.patch(uid, &parameters, &Patch::Merge(patch)).await?;
        Ok(revision(&patched))
    }
}

/// Whether a report is another's. One of ours whose label somebody took away still has our note.
fn is_foreign(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    match labels.and_then(|labels| labels.get(MANAGED_BY)) {
        Some(manager) => manager != SOURCE,
        None => {
            let annotations = metadata.annotations.as_ref();
            !annotations.is_some_and(|all| all.contains_key(INPUTS))
        }
    }
}

/// A report on top of one that is there: what others noted on it stays, and that it was not current
/// does not.
fn over(before: &DynamicObject, mut written: DynamicObject) -> DynamicObject {
    let mut labels = before.metadata.labels.clone().unwrap_or_default();
    labels.extend(written.metadata.labels.take().unwrap_or_default());
    let mut annotations = before.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(STALE);
    annotations.extend(written.metadata.annotations.take().unwrap_or_default());
    written.metadata.labels = Some(labels);
    written.metadata.annotations = Some(annotations);
    written.metadata.resource_version = before.metadata.resource_version.clone();
    written.metadata.uid = before.metadata.uid.clone();
    written.metadata.finalizers = before.metadata.finalizers.clone();
    written
}

/// Whether a report says what is there already.
fn is_same(before: &DynamicObject, written: &DynamicObject) -> bool {
    let said = |object: &DynamicObject| -> [Value; 4] {
        ["scope", "summary", "results", "source"].map(|field| object.data[field].clone())
    };
    let noted = |object: &DynamicObject| {
        let metadata = &object.metadata;
        (
            metadata.labels.clone().unwrap_or_default(),
            metadata.annotations.clone().unwrap_or_default(),
            metadata.owner_references.clone().unwrap_or_default(),
        )
    };
    said(before) == said(written) && noted(before) == noted(written)
}

/// Whether something is not there.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether somebody else has written meanwhile.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether nothing can be kept in a namespace because it is going away.
pub(crate) fn is_ending(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status)
        if status.code == 403 && status.message.contains("being terminated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(annotations: Value, data: Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
            "metadata": {"name": "u", "resourceVersion": "7", "annotations": annotations,
                "labels": {"team": "a"}},
        });
        for (key, value) in data.as_object().unwrap() {
            object[key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_others_noted_on_a_report_stays() {
        let before = object(
            json!({"mine": "1", INPUTS: "old", STALE: "why"}),
            json!({"summary": {"pass": 1}}),
        );
        let mut written = object(json!({INPUTS: "new"}), json!({"summary": {"pass": 2}}));
        written.metadata.labels = Some(BTreeMap::from([("ours".into(), "b".into())]));
        let over = over(&before, written);
        let expected = BTreeMap::from([
            ("mine".to_owned(), "1".to_owned()),
            (INPUTS.to_owned(), "new".to_owned()),
        ]);
        assert_eq!(over.metadata.annotations, Some(expected));
        assert_eq!(over.labels().len(), 2);
        assert_eq!(over.resource_version().as_deref(), Some("7"));
    }

    #[test]
    fn a_report_of_another_is_told_by_its_label() {
        for (labels, annotations, foreign) in [
            (json!({MANAGED_BY: SOURCE}), json!({}), false),
            (json!({MANAGED_BY: "kyverno"}), json!({}), true),
            (json!({MANAGED_BY: "kyverno"}), json!({INPUTS: "a"}), true),
            (json!({}), json!({INPUTS: "a"}), false),
            (json!({"team": "a"}), json!({}), true),
        ] {
            let metadata = json!({"labels": labels, "annotations": annotations});
            let read: ObjectMeta = serde_json::from_value(metadata.clone()).unwrap();
            assert_eq!(is_foreign(&read), foreign, "{metadata}");
        }
    }

    #[test]
    fn a_report_that_says_the_same_is_not_written() {
        let plain = |inputs: &str, pass: u64| {
            object(json!({INPUTS: inputs}), json!({"summary": {"pass": pass}}))
        };
        for (other, same) in [
            (plain("a", 1), true),
            (plain("b", 1), false),
            (plain("a", 2), false),
        ] {
            let before = plain("a", 1);
            assert_eq!(is_same(&before, &over(&before, other)), same);
        }
    }
}
