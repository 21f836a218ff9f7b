//! Where ConfigAuditReports are kept. A report is written by compare and swap, in one request whether or
//! not there was one before; reports of others are left to them.

use super::metrics::ConfigMetrics;
use crate::book::{is_absent, is_conflict, revision};
use crate::object::Object;
use crate::pace::Pace;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use muster_api::config_audit::{GROUP, VERSION};
use muster_checks::report::{MANAGED_BY, MANAGER, STALE};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many whole reports are asked for at once: each may have half a mebibyte.
const PAGE: u32 = 50;
/// How often a report that somebody else writes too is written on top of that.
const TRIES: usize = 5;

/// What came of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It is there, in that revision.
    Written(u64),
    /// There is one of somebody else.
    Foreign,
}

/// Reports.
pub(super) struct Shelf {
    client: Client,
    pace: Arc<Pace>,
    metrics: ConfigMetrics,
}

impl Shelf {
    pub(super) fn new(client: Client, pace: Arc<Pace>, metrics: ConfigMetrics) -> Shelf {
        Shelf {
            client,
            pace,
            metrics,
        }
    }

    /// Writes a report; `before` is the revision of the one that it follows, if there is one.
    pub(super) async fn put(&self, report: Value, mut before: Option<u64>) -> kube::Result<Put> {
        let mut report: DynamicObject =
            serde_json::from_value(report).map_err(kube::Error::SerdeError)?;
        let (namespace, name) = (report.namespace(), report.name_any());
        let api = self.api(namespace.as_deref());
        let parameters = PostParams {
            field_manager: Some(MANAGER.into()),
            ..PostParams::default()
        };
        let mut tries = 0;
        loop {
            tries += 1;
            report.metadata.resource_version = before.map(|before| before.to_string());
            let written = match before {
                None => {
                    self.turn("create").await;
                    api.create(&parameters, &report).await
                }
                Some(_) => {
                    self.turn("update").await;
                    api.replace(&name, &parameters, &report).await
                }
            };
            match written {
                Ok(written) => {
                    self.metrics.reported("written");
                    return Ok(Put::Written(revision(&written)));
                }
                Err(error)
                    if tries < TRIES
                        && (is_conflict(&error) || before.is_some() && is_absent(&error)) =>
                {
                    self.turn("get").await;
                    let there = api.get_metadata_opt(&name).await?;
                    if there.as_ref().is_some_and(|there| !is_ours(there.labels())) {
                        self.metrics.reported("foreign");
                        return Ok(Put::Foreign);
                    }
                    before = there.as_ref().map(revision);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes a report, if it is there.
    pub(super) async fn delete(&self, namespace: Option<&str>, name: &str) -> kube::Result<()> {
        self.turn("delete").await;
        match self
            .api(namespace)
            .delete(name, &DeleteParams::background())
            .await
        {
            Ok(_) => {
                self.metrics.reported("deleted");
                Ok(())
            }
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Says on a report that it may be old, and why; says in which revision it is now.
    pub(super) async fn mark_stale(
        &self,
        namespace: Option<&str>,
        name: &str,
        why: &str,
    ) -> kube::Result<u64> {
        self.turn("patch").await;
        let patch = json!({"metadata": {"annotations": {STALE: why}}});
        let parameters = PatchParams::apply(MANAGER);
        let api = self.api(namespace);
        let patched = api.patch(name, &parameters, &Patch::Merge(patch)).await?;
        self.metrics.reported("stale");
        Ok(revision(&patched))
    }

    /// The reports of ours that have errors, by namespace and name.
    pub(super) async fn with_errors(&self) -> kube::Result<Vec<(Option<String>, String)>> {
        let mut found = Vec::new();
        for namespaced in [true, false] {
            let resource = resource(namespaced);
            let api: Api<Object> = Api::all_with(self.client.clone(), &resource);
            let ours = format!("{MANAGED_BY}={MANAGER}");
            let mut parameters = ListParams::default().labels(&ours).limit(PAGE);
            loop {
                self.turn("list").await;
                let page = api.list(&parameters).await?;
                for report in page.items {
                    let name = (report.namespace(), report.name_any());
                    let errors = &report.into_value(&resource)["report"]["summary"]["errorCount"];
                    if errors.as_u64().is_some_and(|count| count > 0) {
                        found.push(name);
                    }
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => parameters = parameters.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(found)
    }

    fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(namespace.is_some());
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn turn(&self, verb: &'static str) {
        self.pace.turn().await;
        self.metrics.asked(verb);
    }
}

/// The kind of reports on what is in namespaces, or is not.
pub(super) fn resource(namespaced: bool) -> ApiResource {
    let kind = match namespaced {
        true => "ConfigAuditReport",
        false => "ClusterConfigAuditReport",
    };
    ApiResource {
        group: GROUP.into(),
        version: VERSION.into(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

fn is_ours(labels: &std::collections::BTreeMap<String, String>) -> bool {
    labels.get(MANAGED_BY).is_some_and(|by| by == MANAGER)
}
