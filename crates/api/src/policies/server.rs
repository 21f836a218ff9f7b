//! PolicyServer: where policies are evaluated at admission. Muster reads it to find a running
//! server, and how modules are fetched for it; whoever deploys it is somebody else.

use super::{CATEGORY, GROUP, VERSION};
use crate::{condition, validate};
use muster_kind::schema::{Schema, Type, any_object, int32, int64, list, map, object, string};
use muster_kind::{Column, Kind};

/// The kind.
pub fn policy_server() -> Kind {
    let status = object().describe("Whether the server is set up.").field(
        "conditions",
        condition::conditions(
            "CertSecretReconciled, CARootSecretReconciled, ConfigMapReconciled, \
             DeploymentReconciled, ServiceReconciled, PodDisruptionBudgetReconciled and \
             PolicyWebhooksCleanedUp.",
        ),
    );
    Kind::cluster(GROUP, VERSION, "PolicyServer")
        .short("ps")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("A server that evaluates policies.")
        .schema(object().required("spec", spec()).field("status", status))
        .with_status()
        .column(Column::integer("Replicas", ".spec.replicas"))
        .column(Column::string("Image", ".spec.image"))
        .column(Column::age())
        .validated_by(validate::server::policy_server)
}

fn spec() -> Schema {
    let text = |about: &str| string().describe(about);
    pods(object().describe("How the server runs, and what it trusts."))
        .field(
            "insecureSources",
            list(string()).describe("Hosts fetched from without TLS checks."),
        )
        .field(
            "sourceAuthorities",
            map(list(string()).describe("Certificates in PEM."))
                .describe("Certificates to trust, by the host they are for."),
        )
        .field(
            "verificationConfig",
            text("ConfigMap that says which signatures modules need."),
        )
        .field(
            "sigstoreTrustConfig",
            text("ConfigMap with the roots of trust for signatures."),
        )
        .field(
            "namespacedPoliciesCapabilities",
            list(string())
                .describe("Host capabilities open to policies of a namespace; none if empty."),
        )
        .field(
            "webhookPort",
            port("Port for admission requests; 8443 when absent."),
        )
        .field(
            "readinessProbePort",
            port("Port for readiness probes; 8081 when absent."),
        )
        .field("metricsPort", port("Port for metrics."))
        .field(
            "address",
            string().length(1, 2048).describe(
                "Where the server answers, as https://HOST:PORT. Resources are judged there; \
                 without it, in Muster itself.",
            ),
        )
        .field(
            "clientSecret",
            text(
                "Secret in Muster's namespace for that address: tls.crt and tls.key to show, ca.crt to \
                 trust.",
            ),
        )
}

fn pods(spec: Schema) -> Schema {
    let text = |about: &str| string().describe(about);
    // Both are needed unless the server runs elsewhere (the validator says so).
    spec.field(
        "image",
        string().length(1, 2048).describe("Image of the server."),
    )
    .field(
        "replicas",
        int32().at_least(0.0).describe("How many pods run."),
    )
    .field(
        "minAvailable",
        int_or_string("How many pods must stay during a disruption."),
    )
    .field(
        "maxUnavailable",
        int_or_string("How many pods may go during a disruption."),
    )
    .field(
        "annotations",
        map(string()).describe("Annotations for the Deployment and its pods."),
    )
    .field(
        "labels",
        map(string()).describe("Labels for the Deployment and its pods."),
    )
    .field(
        "env",
        list(environment())
            .keyed_by(["name"])
            .describe("Environment of the server."),
    )
    .field(
        "serviceAccountName",
        text("ServiceAccount the pods run as."),
    )
    .field(
        "imagePullSecret",
        text("Secret of type dockerconfigjson for fetching modules."),
    )
    .field(
        "securityContexts",
        object()
            .describe("Security settings of the pods.")
            .field(
                "container",
                any_object().describe("A SecurityContext for the container."),
            )
            .field(
                "pod",
                any_object().describe("A PodSecurityContext for the pod."),
            ),
    )
    .field(
        "affinity",
        any_object().describe("An Affinity for the pods."),
    )
    .field("limits", quantities("Most resources a pod may use."))
    .field("requests", quantities("Resources set aside for a pod."))
    .field(
        "tolerations",
        list(toleration()).describe("Taints the pods tolerate."),
    )
    .field("priorityClassName", text("PriorityClass of the pods."))
}

fn port(about: &str) -> Schema {
    int32().range(1.0, 65535.0).describe(about)
}

fn int_or_string(about: &str) -> Schema {
    let mut schema = string().describe(about);
    schema.of = Type::IntOrString;
    schema
}

fn quantities(about: &str) -> Schema {
    map(int_or_string("A quantity such as 500m or 1Gi.")).describe(about)
}

fn environment() -> Schema {
    object()
        .describe("One variable.")
        .required(
            "name",
            string().length(1, 1024).describe("Name of the variable."),
        )
        .field("value", string().describe("Value of the variable."))
        .field(
            "valueFrom",
            any_object().describe("An EnvVarSource to take the value from."),
        )
}

fn toleration() -> Schema {
    object()
        .describe("A taint that does not keep the pods away.")
        .field(
            "key",
            string().describe("Key of the taint; all keys when empty."),
        )
        .field(
            "operator",
            string()
                .one_of(["Equal", "Exists"])
                .describe("How the value is compared."),
        )
        .field("value", string().describe("Value of the taint."))
        .field(
            "effect",
            string()
                .one_of(["NoSchedule", "PreferNoSchedule", "NoExecute"])
                .describe("Effect of the taint; all effects when absent."),
        )
        .field(
            "tolerationSeconds",
            int64().describe("How long NoExecute is tolerated."),
        )
}
