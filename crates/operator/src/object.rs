//! Our kinds as the client sees them: where they are served, and how an object is written. An
//! object is always applied whole, so that writing it twice is writing it once.

use crate::message::{Job, JobKind};
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListMeta, ListParams, ObjectMeta, Patch,
    PatchParams,
};
use kube::{Api, Client};
use muster_api::guard::WORKLOAD_SCAN;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name under which our fields are owned.
pub(crate) const MANAGER: &str = "muster";
/// Ties an object to the ScanJob it was made for.
const JOB_UID: &str = "sbomscanner.kubewarden.io/scanjob-uid";
/// The name of that ScanJob.
pub(crate) const JOB_NAME: &str = "sbomscanner.kubewarden.io/scanjob";
/// Ties an object to the RegistryDiscovery it was made for.
const DISCOVERY_UID: &str = "sbomscanner.kubewarden.io/registrydiscovery-uid";
/// The name of that RegistryDiscovery.
pub(crate) const DISCOVERY_NAME: &str = "sbomscanner.kubewarden.io/registrydiscovery";
/// The Registry as it was when a job began, on the job, for people to look up. What is scanned, and
/// with which credentials, is read from the Registry itself: whoever creates jobs writes this too.
pub(crate) const SNAPSHOT: &str = "sbomscanner.kubewarden.io/registry";
/// What the catalog of a job came to, on the job: how many images, and what could not be listed.
pub(crate) const CATALOGED: &str = "sbomscanner.kubewarden.io/catalog";
/// The UID of the job that had to read the image, on its SBOM.
pub(crate) const READ_BY: &str = "sbomscanner.kubewarden.io/read-by";
/// The version of the analyzer that read the image, on its SBOM.
pub(crate) const ANALYZER: &str = "sbomscanner.kubewarden.io/analyzer";
/// The UID of the job that had to match the SBOM, on its report.
pub(crate) const MATCHED_BY: &str = "sbomscanner.kubewarden.io/matched-by";
/// What a report depends on beside the SBOM, on the report: as long as that is the same, so is it.
pub(crate) const MATCHED_WITH: &str = "sbomscanner.kubewarden.io/matched-with";
/// Why an image could not be scanned, and by which job: `uid: reason`.
pub(crate) const FAILURE: &str = "sbomscanner.kubewarden.io/scan-failure";

/// As which of how many images a tag was listed, on an Image: with it, a tag that has not moved need
/// not be listed again.
pub(crate) const LISTED: &str = "sbomscanner.kubewarden.io/listed";
/// What a Registry names and its registry does not have, on a ScanJob: a JSON list.
pub(crate) const NOT_FOUND: &str = "sbomscanner.kubewarden.io/not-found";

/// The same on a Registry of the workload scan, as `repository:tag` or `repository@digest`, for as
/// long as it is so.
pub(crate) const MISSING: &str = "sbomscanner.kubewarden.io/last-missing";

const SCANNER: &str = "sbomscanner.kubewarden.io";
const STORAGE: &str = "storage.sbomscanner.kubewarden.io";
const VERSION: &str = "v1alpha1";

/// A kind of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    group: &'static str,
    pub(crate) kind: &'static str,
    plural: &'static str,
}

pub(crate) const REGISTRY: Kind = kind(SCANNER, "Registry", "registries");
pub(crate) const SCAN_JOB: Kind = kind(SCANNER, "ScanJob", "scanjobs");
pub(crate) const VEX_HUB: Kind = kind(SCANNER, "VEXHub", "vexhubs");
pub(crate) const DISCOVERY: Kind = kind(SCANNER, "RegistryDiscovery", "registrydiscoveries");
pub(crate) const IMAGE: Kind = kind(STORAGE, "Image", "images");
pub(crate) const SBOM: Kind = kind(STORAGE, "SBOM", "sboms");
pub(crate) const REPORT: Kind = kind(STORAGE, "VulnerabilityReport", "vulnerabilityreports");

pub(crate) const WORKLOAD_REPORT: Kind = kind(STORAGE, "WorkloadScanReport", "workloadscanreports");
pub(crate) const FINDING_HISTORY: Kind = kind(STORAGE, "FindingHistory", "findinghistories");
pub(crate) const CONFIGURATION: Kind = kind(
    SCANNER,
    "WorkloadScanConfiguration",
    "workloadscanconfigurations",
);

const fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        kind,
        plural,
    }
}

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{VERSION}", self.group)
    }

    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.into(),
            version: VERSION.into(),
            api_version: self.api_version(),
            kind: self.kind.into(),
            plural: self.plural.into(),
        }
    }

    pub(crate) fn all(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    pub(crate) fn within(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }

    fn path(&self, namespace: &str, name: &str) -> String {
        let version = self.api_version();
        format!(
            "/apis/{version}/namespaces/{namespace}/{}/{name}",
            self.plural
        )
    }

    /// Makes an object what is given; fields of others stay theirs.
    pub(crate) async fn apply(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
        object: &impl Serialize,
    ) -> Result<(), kube::Error> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let path = self.path(namespace, name);
        let request = http::Request::patch(format!("{path}?fieldManager={MANAGER}&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            // So that a large object waits for its turn, in process too.
            .header("content-length", body.len())
            .body(body)
            .map_err(kube::Error::HttpError)?;
        client.request_text(request).await.map(drop)
    }

    /// Reads an object as whatever is needed of it; none if it is not there.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<T>, kube::Error> {
        let request = http::Request::get(self.path(namespace, name))
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        match client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the objects that a field selector selects as whatever is needed of them.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        client: &Client,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<T>, kube::Error> {
        let selected = ListParams::default().fields(selector);
        self.pages(client, namespace, "", selected).await
    }

    /// Reads the objects of a namespace without what is large of what is computed.
    pub(crate) async fn list_brief<T: DeserializeOwned>(
        &self,
        client: &Client,
        namespace: &str,
    ) -> Result<Vec<T>, kube::Error> {
        let all = ListParams::default();
        self.pages(client, namespace, "&computed=brief", all).await
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        client: &Client,
        namespace: &str,
        option: &str,
        selected: ListParams,
    ) -> Result<Vec<T>, kube::Error> {
        let path = self.path(namespace, "");
        let path = path.trim_end_matches('/');
        let mut parameters = selected.limit(500);
        let mut found = Vec::new();
        loop {
            let request = kube::core::Request::new(path).list(&parameters);
            let mut request = request.map_err(kube::Error::BuildRequest)?;
            let asked = format!("{}{option}", request.uri()).parse();
            *request.uri_mut() = asked
                .map_err(|error: http::uri::InvalidUri| kube::Error::HttpError(error.into()))?;
            let page: Page<T> = client.request(request).await?;
            found.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// The metadata of the objects made for a job.
    pub(crate) async fn of_job(
        &self,
        client: &Client,
        job: &Job,
    ) -> Result<Vec<ObjectMeta>, kube::Error> {
        let (key, _) = keys(job.kind);
        let selected = ListParams::default().labels(&format!("{key}={}", job.uid));
        self.metadata(client, &job.namespace, selected).await
    }

    /// The metadata of the objects that are selected.
    pub(crate) async fn metadata(
        &self,
        client: &Client,
        namespace: &str,
        selected: ListParams,
    ) -> Result<Vec<ObjectMeta>, kube::Error> {
        metadata(self.within(client, namespace), selected).await
    }

    /// The same of all namespaces.
    pub(crate) async fn metadata_anywhere(
        &self,
        client: &Client,
        selected: ListParams,
    ) -> Result<Vec<ObjectMeta>, kube::Error> {
        metadata(self.all(client), selected).await
    }

    /// Changes an object by a JSON patch.
    pub(crate) async fn revise(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
        operations: &Value,
    ) -> Result<(), kube::Error> {
        let path = self.path(namespace, name);
        let body = operations.to_string().into_bytes();
        let request = http::Request::patch(format!("{path}?fieldManager={MANAGER}"))
            .header("content-type", "application/json-patch+json")
            .header("content-length", body.len())
            .body(body)
            .map_err(kube::Error::HttpError)?;
        client.request_text(request).await.map(drop)
    }

    /// Changes some fields of an object.
    pub(crate) async fn merge(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let parameters = PatchParams::apply(MANAGER);
        let api = self.within(client, namespace);
        api.patch(name, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// Lists metadata, page by page.
async fn metadata(
    api: Api<DynamicObject>,
    selected: ListParams,
) -> Result<Vec<ObjectMeta>, kube::Error> {
    let mut parameters = selected.limit(500);
    let mut found = Vec::new();
    loop {
        let page = api.list_metadata(&parameters).await?;
        found.extend(page.items.into_iter().map(|item| item.metadata));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// A part of a list.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    metadata: ListMeta,
    items: Vec<T>,
}

/// Writes on an object which job it was last looked at for, and what else; `null` takes away.
pub(crate) fn marked(job: &Job, annotations: Value) -> Value {
    json!({"metadata": {"labels": labels(job), "annotations": annotations}})
}

/// Has an object say by which digest of its configuration its image is known too: what was written
/// before Images said so does not, and is otherwise as good as new.
pub(crate) fn recognize(patch: &mut Value, image: &Value) {
    if let Some(digest) = image["configDigest"].as_str() {
        patch["imageMetadata"] = json!({"configDigest": digest});
    }
}

/// What an annotation says.
pub(crate) fn noted<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether an object goes with the one of that UID.
pub(crate) fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    let owners = metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.uid == uid)
}

/// Where Leases are served.
pub(crate) fn lease_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"))
}

/// The metadata of an object made for a job: it goes with its owner.
pub(crate) fn made_for(job: &Job, name: &str, owner: Kind, owner_name: &str, uid: &str) -> Value {
    json!({
        "name": name, "namespace": job.namespace, "labels": labels(job),
        "ownerReferences": [{
            "apiVersion": owner.api_version(), "kind": owner.kind, "name": owner_name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

/// What was found for the workload scan is labelled so from its Registry down.
pub(crate) fn inherit(metadata: &mut Value, owner: &ObjectMeta) {
    let labels = owner.labels.as_ref();
    if let Some(value) = labels.and_then(|labels| labels.get(WORKLOAD_SCAN)) {
        metadata["labels"][WORKLOAD_SCAN] = json!(value);
    }
}

/// The labels that name a job: by its UID, and by its name.
fn keys(kind: JobKind) -> (&'static str, &'static str) {
    match kind {
        JobKind::ScanJob => (JOB_UID, JOB_NAME),
        JobKind::RegistryDiscovery => (DISCOVERY_UID, DISCOVERY_NAME),
    }
}

/// Whether an object was made for a job.
pub(crate) fn is_for(metadata: &ObjectMeta, job: &Job) -> bool {
    let (key, _) = keys(job.kind);
    let labels = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(key)) == Some(&job.uid)
}

/// Makes an object go with its owner, without keeping that.
pub(crate) fn owned_by(kind: Kind, owner: &DynamicObject) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": owner.metadata.name,
        "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": false,
    })
}

/// What ties an object to its job, and to this program.
fn labels(job: &Job) -> Value {
    /// A label's value is shorter than a name may be.
    const LONGEST: usize = 63;
    let (uid, name) = keys(job.kind);
    let mut labels = json!({
        "app.kubernetes.io/managed-by": "sbomscanner",
        "app.kubernetes.io/part-of": "sbomscanner",
        uid: job.uid,
    });
    // Without it a job is only looked at from time to time.
    if job.name.len() <= LONGEST {
        labels[name] = json!(job.name);
    }
    labels
}

/// A condition as it is now; its time moves only when it begins or ceases to hold.
pub(crate) fn condition(
    before: &Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: &str,
) -> Value {
    let status = if holds { "True" } else { "False" };
    let known = before.as_array().into_iter().flatten();
    let since = known
        .filter(|known| known["type"] == kind && known["status"] == status)
        .find_map(|known| known["lastTransitionTime"].as_str())
        .unwrap_or(now);
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": generation,
    })
}

/// The time as objects tell it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Whether an object is simply not there.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
