//! Taking back what kube-apiserver was told ([`configuration`](super::configuration)), where nobody is to
//! answer any more: it would go on asking, and refuse what it is not answered. Only what this
//! installation wrote itself is touched.

use super::MANAGER;
use super::configuration::{self, NAME, PART_OF};
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, Client, ResourceExt};

/// Deletes both configurations, if they are this installation's.
pub(super) async fn withdraw(client: &Client, installation: &str) -> kube::Result<()> {
    let found = configuration::read(client).await?;
    for (resource, found) in configuration::resources().into_iter().zip(found) {
        let Some(told) = found else {
            continue;
        };
        if !is_ours(&told, installation) {
            tracing::debug!(kind = resource.kind, name = NAME, "somebody else's, left");
            continue;
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let exactly = DeleteParams {
            preconditions: Some(Preconditions {
                uid: told.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(NAME, &exactly).await {
            Err(kube::Error::Api(refused)) if refused.code == 404 => {}
            deleted => {
                deleted?;
                tracing::info!(kind = resource.kind, name = NAME, "deleted");
            }
        }
    }
    Ok(())
}

/// Whether an installation wrote a configuration: it has our label, we applied it, and if
/// kube-apiserver asks through a Service, that is one of its own.
fn is_ours(told: &DynamicObject, installation: &str) -> bool {
    let mut managers = told.managed_fields().iter();
    let applied = managers.any(|one| {
        one.manager.as_deref() == Some(MANAGER) && one.operation.as_deref() == Some("Apply")
    });
    let labelled = told.labels().get(PART_OF).is_some_and(|of| of == NAME);
    let webhooks = told.data["webhooks"].as_array().into_iter().flatten();
    let mut asked = webhooks.filter_map(|webhook| {
        let service = webhook.pointer("/clientConfig/service/namespace")?;
        service.as_str()
    });
    applied && labelled && asked.all(|namespace| namespace == installation)
}

#[cfg(test)]
mod tests {
    use super::super::configuration::{Place, mutating_of, validating_of};
    use super::*;
    use muster_api::guard::Accounts;
    use serde_json::{Value, json};

    #[test]
    fn only_what_this_installation_told_is_taken_back() {
        let accounts = Accounts::in_namespace("muster");
        let service = Place::Service {
            namespace: "muster".into(),
            name: "muster-operator".into(),
        };
        let url = Place::Url("https://127.0.0.1:9443".parse().unwrap());
        let told = |mut configuration: Value, manager: &str, operation: &str| {
            let fields = json!([{"manager": "kubectl", "operation": "Update"},
                                {"manager": manager, "operation": operation}]);
            configuration["metadata"]["managedFields"] = fields;
            serde_json::from_value::<DynamicObject>(configuration).unwrap()
        };
        let mut bare = validating_of(&service, &accounts, None);
        bare["metadata"]["labels"] = json!({});
        for (configuration, manager, operation, installation, ours) in [
            (
                mutating_of(&service, &accounts, None),
                MANAGER,
                "Apply",
                "muster",
                true,
            ),
            (
                validating_of(&url, &accounts, Some("pem")),
                MANAGER,
                "Apply",
                "elsewhere",
                true,
            ),
            (
                validating_of(&service, &accounts, None),
                MANAGER,
                "Apply",
                "elsewhere",
                false,
            ),
            (
                validating_of(&service, &accounts, None),
                "helm",
                "Apply",
                "muster",
                false,
            ),
            (
                validating_of(&service, &accounts, None),
                MANAGER,
                "Update",
                "muster",
                false,
            ),
            (bare, MANAGER, "Apply", "muster", false),
        ] {
            let told = told(configuration, manager, operation);
            let found = is_ours(&told, installation);
            assert_eq!(found, ours, "{manager} {operation} {installation}");
        }
    }
}
