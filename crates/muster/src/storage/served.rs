//! Which kinds a storage serves: what was found in images, always; policy and audit reports too if
//! they are not left to kube-apiserver. Two owners of one group would hide each other's objects, so
//! a group that has a CustomResourceDefinition is not taken.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt};
use muster_kind::Kind;

/// Where policy and audit reports live.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reports {
    /// In kube-apiserver.
    Crd,
    /// Here.
    Served,
}

impl Reports {
    /// The kinds that are served here.
    pub(crate) fn kinds(self) -> Vec<Kind> {
        let mut kinds = muster_api::storage::kinds();
        if self == Reports::Served {
            kinds.extend(muster_api::reports::kinds());
            kinds.extend(muster_api::config_audit::kinds());
        }
        kinds
    }

    /// Refuses to take what another has.
    pub(super) async fn check(self, client: &kube::Client) -> Result<()> {
        if self == Reports::Crd {
            return Ok(());
        }
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let found = api.list_metadata(&ListParams::default()).await;
        let found = found.context("looking for CustomResourceDefinitions of reports")?;
        let groups: Vec<String> = self.kinds().into_iter().map(|kind| kind.group).collect();
        for definition in &found.items {
            let name = definition.name_any();
            let group = name.split_once('.').map_or("", |(_, group)| group);
            if groups.iter().any(|taken| taken == group) {
                bail!(
                    "the cluster has the CustomResourceDefinition {name}{}: delete it with what keeps it, or serve reports as `--reports-backend=crd`",
                    owner(definition)
                );
            }
        }
        Ok(())
    }
}

/// Whose a definition is, as far as it says.
fn owner(definition: &PartialObjectMeta<CustomResourceDefinition>) -> String {
    let annotation = |key: &str| definition.annotations().get(key).cloned();
    let label = |key: &str| definition.labels().get(key).cloned();
    let release = annotation("meta.helm.sh/release-name").map(|name| {
        let namespace = annotation("meta.helm.sh/release-namespace").unwrap_or_default();
        format!("the Helm release {namespace}/{name}")
    });
    let written = || {
        let fields = definition.managed_fields().first()?;
        fields.manager.clone()
    };
    let owner = release
        .or_else(|| label("app.kubernetes.io/managed-by"))
        .or_else(|| label("app.kubernetes.io/part-of"))
        .or_else(written);
    owner.map_or_else(String::new, |owner| format!(", which belongs to {owner}"))
}
