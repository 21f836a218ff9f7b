//! What kube-apiserver is told: which writes to ask about, where, and whom to believe there. Only
//! our own kinds are asked about, so a fault of ours keeps nobody from anything else; those wait
//! for an answer, because a rule that holds only sometimes is none. What our own roles write on the
//! way is asked about only where their word is not enough, so that scans go on while nobody answers.
//! The WorkloadScanConfiguration is an exception: administrators alone write it, Helm at a time at which
//! operators only just start, and without it nothing is scanned. It is stored if no operator answers.

use super::MANAGER;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use muster_api::guard::{Accounts, MANAGED_BY, WORKLOAD_SCAN};
use muster_api::scanner;
use muster_kind::Kind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name of both configurations.
pub(super) const NAME: &str = "muster";
/// The label by which people see whose they are: `muster`.
pub(super) const PART_OF: &str = "app.kubernetes.io/part-of";
/// How long kube-apiserver waits for an answer.
const SECONDS: u64 = 10;
/// The path that answers what an object lacks.
pub(super) const DEFAULTS: &str = "/mutate";
/// The path that answers whether a write may happen.
pub(super) const VERDICT: &str = "/validate";

/// Where kube-apiserver asks.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A Service in front of all replicas.
    Service { namespace: String, name: String },
    /// An address outside the cluster.
    Url(Uri),
}

impl Place {
    /// What a server there must be called.
    pub(super) fn names(&self) -> BTreeSet<String> {
        match self {
            Place::Service { namespace, name } => {
                let service = format!("{name}.{namespace}.svc");
                BTreeSet::from([format!("{service}.cluster.local"), service])
            }
            Place::Url(url) => {
                let host = url.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                BTreeSet::from([host.to_owned()])
            }
        }
    }

    /// Where a server there is asked.
    pub(super) fn address(&self) -> String {
        match self {
            Place::Service { namespace, name } => format!("https://{name}.{namespace}.svc:443"),
            Place::Url(url) => url.to_string(),
        }
    }

    fn client(&self, path: &str, bundle: Option<&str>) -> Value {
        let mut client = match self {
            Place::Service { namespace, name } => json!({
                "service": {"namespace": namespace, "name": name, "path": path, "port": 443},
            }),
            Place::Url(url) => json!({
                "url": format!("{}{path}", url.to_string().trim_end_matches('/')),
            }),
        };
        if let Some(bundle) = bundle {
            client["caBundle"] = json!(STANDARD.encode(bundle));
        }
        client
    }
}

/// Reads both configurations, those that exist.
pub(super) async fn read(client: &Client) -> kube::Result<[Option<DynamicObject>; 2]> {
    let [mutating, validating] = resources().map(|resource| async move {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        // A patch that says nothing and is only tried reads the object, with no other right than that
        // with which it was written.
        let tried = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        match api.patch(NAME, &tried, &Patch::Merge(json!({}))).await {
            Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(None),
            found => found.map(Some),
        }
    });
    Ok([mutating.await?, validating.await?])
}

/// Whether kube-apiserver asks already, because of an earlier start or another operator.
pub(super) fn are_registered(found: &[Option<DynamicObject>]) -> bool {
    let webhooks = |one: &DynamicObject| one.data.get("webhooks")?.as_array().map(Vec::len);
    found
        .iter()
        .flatten()
        .filter_map(webhooks)
        .any(|count| count > 0)
}

/// The kinds of the two configurations.
pub(super) fn resources() -> [ApiResource; 2] {
    [
        ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    ]
}

/// Tells kube-apiserver; what it knows already changes nothing.
pub(super) async fn apply(
    client: &Client,
    place: &Place,
    accounts: &Accounts,
    bundle: Option<&str>,
) -> Result<()> {
    let parameters = PatchParams::apply(MANAGER).force();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let wanted = Patch::Apply(mutating_of(place, accounts, bundle));
    mutating
        .patch(NAME, &parameters, &wanted)
        .await
        .with_context(|| format!("applying the MutatingWebhookConfiguration {NAME}"))?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let wanted = Patch::Apply(validating_of(place, accounts, bundle));
    validating
        .patch(NAME, &parameters, &wanted)
        .await
        .with_context(|| format!("applying the ValidatingWebhookConfiguration {NAME}"))?;
    Ok(())
}

pub(super) fn mutating_of(place: &Place, accounts: &Accounts, bundle: Option<&str>) -> Value {
    let kinds = scanner::kinds();
    let (configurations, others): (Vec<&Kind>, _) = kinds.iter().partition(is_configuration);
    let doubtful = format!("{} && {STAYING}", is_stranger(accounts));
    let defaults = |name, kinds: &[&Kind]| {
        let mut webhook = webhook(name, place.client(DEFAULTS, bundle), "None");
        webhook["rules"] = json!([rule(kinds, "", &["CREATE", "UPDATE"])]);
        webhook["reinvocationPolicy"] = json!("Never");
        webhook["matchConditions"] = asked_if("strangers", &doubtful);
        webhook
    };
    let mut late = defaults("configuration-defaults", &configurations);
    late["failurePolicy"] = json!("Ignore");
    configuration(
        "MutatingWebhookConfiguration",
        vec![defaults("defaults", &others), late],
    )
}

pub(super) fn validating_of(place: &Place, accounts: &Accounts, bundle: Option<&str>) -> Value {
    let kinds = scanner::kinds();
    let named = |names: &[&str]| -> Vec<&Kind> {
        let wanted = kinds.iter();
        wanted
            .filter(|kind| names.contains(&kind.kind.as_str()))
            .collect()
    };
    let (jobs, guarded) = (
        named(&["ScanJob", "RegistryDiscovery"]),
        named(&["Registry"]),
    );
    let is_job = |kind: &Kind| jobs.iter().any(|job| job.kind == kind.kind);
    let others = kinds.iter().filter(|kind| !is_job(kind));
    let (configurations, others): (Vec<&Kind>, _) = others.partition(is_configuration);
    let client = || place.client(VERDICT, bundle);
    let doubtful = format!(
        "({} && {STAYING}) || ({})",
        is_stranger(accounts),
        is_managed(accounts)
    );
    let objects = |name, kinds: &[&Kind]| {
        let mut webhook = webhook(name, client(), "None");
        webhook["rules"] = json!([rule(kinds, "", &["CREATE", "UPDATE"])]);
        webhook["matchConditions"] = asked_if("strangers-or-managed", &doubtful);
        webhook
    };
    let mut late = objects("configurations", &configurations);
    late["failurePolicy"] = json!("Ignore");
    // What the workload scan manages is guarded by every door; others go by these unasked, so that
    // a namespace can be deleted whoever answers.
    let mut managed = webhook("managed", client(), "None");
    managed["rules"] = json!([
        rule(&guarded, "", &["DELETE"]),
        rule(&guarded, "/status", &["UPDATE"]),
    ]);
    managed["matchConditions"] = asked_if("managed", &is_managed(accounts));
    // A job that is created claims its Registry, unless it is only tried.
    let mut claims = webhook("jobs", client(), "NoneOnDryRun");
    claims["rules"] = json!([rule(&jobs, "", &["CREATE", "UPDATE"])]);
    let claiming = format!(
        r#"request.operation == "CREATE" || ({} && {STAYING})"#,
        is_stranger(accounts)
    );
    claims["matchConditions"] = asked_if("strangers-or-created", &claiming);
    configuration(
        "ValidatingWebhookConfiguration",
        vec![objects("objects", &others), late, managed, claims],
    )
}

/// Whether a kind is the WorkloadScanConfiguration.
fn is_configuration(kind: &&Kind) -> bool {
    kind.kind == "WorkloadScanConfiguration"
}

/// Whether an object is to stay, in CEL: of one on its way out nothing is asked but by whom.
const STAYING: &str = "!has(object.metadata.deletionTimestamp)";

/// Whether somebody else than our own roles writes, in CEL.
fn is_stranger(accounts: &Accounts) -> String {
    let own = json!([accounts.controller, accounts.worker]);
    format!("!(request.userInfo.username in {own})")
}

/// Whether somebody else than the controller writes what the workload scan may manage, in CEL.
fn is_managed(accounts: &Accounts) -> String {
    let labelled = |object: &str| {
        let labels = format!("{object}.metadata.labels");
        let (scan, manager) = (json!(WORKLOAD_SCAN), json!(MANAGED_BY));
        // What is created was nothing before, and what is deleted will be nothing.
        format!(
            "({object} != null && has({labels}) && ({scan} in {labels} || {manager} in {labels}))"
        )
    };
    format!(
        "request.userInfo.username != {} && ({} || {})",
        json!(accounts.controller),
        labelled("object"),
        labelled("oldObject")
    )
}

fn asked_if(name: &str, expression: &str) -> Value {
    json!([{"name": name, "expression": expression}])
}

fn configuration(kind: &str, webhooks: Vec<Value>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": NAME, "labels": {PART_OF: NAME}},
        "webhooks": webhooks,
    })
}

fn webhook(name: &str, client: Value, side_effects: &str) -> Value {
    json!({
        "name": format!("{name}.{}", scanner::GROUP), "clientConfig": client,
        "sideEffects": side_effects, "failurePolicy": "Fail", "matchPolicy": "Equivalent",
        "timeoutSeconds": SECONDS, "admissionReviewVersions": ["v1"],
    })
}

fn rule(kinds: &[&Kind], subresource: &str, operations: &[&str]) -> Value {
    let resources = kinds
        .iter()
        .map(|kind| format!("{}{subresource}", kind.plural));
    json!({
        "apiGroups": [scanner::GROUP], "apiVersions": [scanner::VERSION],
        "resources": resources.collect::<Vec<_>>(), "operations": operations, "scope": "*",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Place {
        Place::Service {
            namespace: "muster".into(),
            name: "muster-operator".into(),
        }
    }

    #[test]
    fn only_our_own_kinds_are_asked_about() {
        let accounts = Accounts::in_namespace("muster");
        let mut asked = BTreeSet::new();
        for configuration in [
            mutating_of(&service(), &accounts, None),
            validating_of(&service(), &accounts, None),
        ] {
            for webhook in configuration["webhooks"].as_array().unwrap() {
                for rule in webhook["rules"].as_array().unwrap() {
                    assert_eq!(rule["apiGroups"], json!([scanner::GROUP]));
                    let resources = rule["resources"].as_array().unwrap();
                    // Helm writes it while operators start.
                    let is_late = rule["resources"] == json!(["workloadscanconfigurations"]);
                    let policy = if is_late { "Ignore" } else { "Fail" };
                    assert_eq!(webhook["failurePolicy"], policy, "{rule}");
                    assert!(!resources.is_empty(), "{rule}");
                    asked.extend(resources.iter().map(Value::to_string));
                }
            }
        }
        for kind in scanner::kinds() {
            assert!(asked.contains(&json!(kind.plural).to_string()), "{asked:?}");
        }
    }

    #[test]
    fn webhooks_are_registered_if_either_configuration_has_some() {
        let accounts = Accounts::in_namespace("muster");
        let full = mutating_of(&service(), &accounts, None);
        let kind = "ValidatingWebhookConfiguration";
        let mut bare = configuration(kind, Vec::new());
        let empty = bare.clone();
        bare.as_object_mut().unwrap().remove("webhooks");
        for (found, expected) in [
            ([None, None], false),
            // As the chart creates them.
            ([Some(&bare), Some(&bare)], false),
            ([Some(&empty), None], false),
            ([Some(&full), None], true),
            ([Some(&bare), Some(&full)], true),
            ([Some(&full), Some(&full)], true),
        ] {
            let object = |one: &Value| serde_json::from_value(one.clone()).unwrap();
            let objects = found.map(|one| one.map(object));
            assert_eq!(are_registered(&objects), expected, "{found:?}");
        }
    }

    #[test]
    fn a_place_is_asked_by_its_name() {
        let url = |text: &str| Place::Url(text.parse().unwrap());
        let service_names = &[
            "muster-operator.muster.svc",
            "muster-operator.muster.svc.cluster.local",
        ][..];
        for (place, names, address) in [
            (service(), service_names, Value::Null),
            (
                url("https://127.0.0.1:9443"),
                &["127.0.0.1"],
                json!("https://127.0.0.1:9443/validate"),
            ),
            (
                url("https://[::1]:9443/"),
                &["::1"],
                json!("https://[::1]:9443/validate"),
            ),
        ] {
            let found: Vec<String> = place.names().into_iter().collect();
            assert_eq!(found, names);
            let client = place.client(VERDICT, Some("pem"));
            assert_eq!(client["url"], address, "{client}");
            assert_eq!(client["caBundle"], "cGVt");
        }
        assert_eq!(
            service().address(),
            "https://muster-operator.muster.svc:443"
        );
        let client = service().client(DEFAULTS, None);
        assert_eq!(client["service"]["path"], DEFAULTS);
        assert_eq!(client.get("caBundle"), None);
    }
}
