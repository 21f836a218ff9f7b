//! What keeps a Registry from going while a job works on it: a finalizer. It is there before a job
//! begins, whoever comes first, and is taken away when nobody holds the Registry's Lease.

use crate::object::REGISTRY;
use kube::Client;
use kube::api::ObjectMeta;
use serde_json::json;

const FINALIZER: &str = "sbomscanner.kubewarden.io/running-job";

/// Whether it is there.
pub(crate) fn is_tied(registry: &ObjectMeta) -> bool {
    let mut known = registry.finalizers.iter().flatten();
    known.any(|known| known == FINALIZER)
}

/// Puts it there, unless somebody writes the Registry meanwhile.
pub(crate) async fn tie(client: &Client, registry: &ObjectMeta) -> Result<(), kube::Error> {
    let known = registry.finalizers.clone().unwrap_or_default();
    write(client, registry, [known, vec![FINALIZER.into()]].concat()).await
}

/// Takes it away, unless somebody writes the Registry meanwhile.
pub(crate) async fn untie(client: &Client, registry: &ObjectMeta) -> Result<(), kube::Error> {
    let mut others = registry.finalizers.clone().unwrap_or_default();
    others.retain(|known| known != FINALIZER);
    write(client, registry, others).await
}

async fn write(
    client: &Client,
    registry: &ObjectMeta,
    finalizers: Vec<String>,
) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {
        "resourceVersion": registry.resource_version, "finalizers": finalizers,
    }});
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (part(&registry.namespace), part(&registry.name));
    REGISTRY.merge(client, &namespace, &name, &patch).await
}
