//! The policies that Muster brings along, compiled into the binary so that an audit needs nothing
//! from outside. Each is one file under `policies/`, with examples of what it lets pass and what it
//! does not beside it; a test keeps this list and that directory the same.

/// One policy of Muster's own.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Area and name, as in `workload/image_tag`.
    pub name: &'static str,
    /// The Rego module, with its METADATA.
    pub text: &'static str,
}

macro_rules! policies {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("../policies/", $name, ".rego")) }),*]
    };
}

/// All policies, by area.
pub const POLICIES: &[Builtin] = policies![
    "pod_security_baseline/apparmor",
    "pod_security_baseline/capabilities",
    "pod_security_baseline/host_namespaces",
    "pod_security_baseline/host_path_volumes",
    "pod_security_baseline/host_ports",
    "pod_security_baseline/host_probes",
    "pod_security_baseline/host_process",
    "pod_security_baseline/privileged",
    "pod_security_baseline/proc_mount",
    "pod_security_baseline/seccomp",
    "pod_security_baseline/selinux",
    "pod_security_baseline/sysctls",
    "pod_security_restricted/capabilities",
    "pod_security_restricted/privilege_escalation",
    "pod_security_restricted/proc_mount",
    "pod_security_restricted/run_as_non_root",
    "pod_security_restricted/run_as_user",
    "pod_security_restricted/seccomp",
    "pod_security_restricted/volume_types",
    "workload/concurrent_cronjob",
    "workload/cpu_limits",
    "workload/cpu_requests",
    "workload/default_namespace",
    "workload/downloaded_script",
    "workload/host_aliases",
    "workload/image_digest",
    "workload/image_tag",
    "workload/liveness_probe",
    "workload/low_group_id",
    "workload/low_user_id",
    "workload/memory_limits",
    "workload/memory_requests",
    "workload/no_grace_period",
    "workload/read_only_root_filesystem",
    "workload/readiness_probe",
    "workload/replicas_not_spread",
    "workload/runtime_socket",
    "workload/secret_in_environment",
    "workload/sensitive_host_path",
    "workload/service_account_token",
    "workload/shared_process_namespace",
    "workload/single_replica",
    "workload/system_priority",
    "rbac/anonymous",
    "rbac/approve_certificates",
    "rbac/authenticated",
    "rbac/change_configmaps",
    "rbac/change_namespaces",
    "rbac/cluster_admin",
    "rbac/create_tokens",
    "rbac/create_volumes",
    "rbac/create_workloads",
    "rbac/default_service_account",
    "rbac/delete_traces",
    "rbac/enter_pods",
    "rbac/escalate_or_bind",
    "rbac/impersonate",
    "rbac/manage_bindings",
    "rbac/manage_webhooks",
    "rbac/proxy_to_nodes",
    "rbac/read_secrets",
    "rbac/system_masters",
    "rbac/wildcard_groups",
    "rbac/wildcard_resources",
    "rbac/wildcard_verbs",
    "network/all_namespaces",
    "network/egress_to_everywhere",
    "network/ingress_from_everywhere",
    "network/ingress_snippet",
    "network/ingress_wildcard_host",
    "network/ingress_without_tls",
    "service/external_ips",
    "service/external_name_inside",
    "service/load_balancer_open",
    "service/node_port",
    "configuration/default_service_account_token",
    "configuration/host_path_persistent_volume",
    "configuration/namespace_privileged",
    "configuration/namespace_without_standard",
    "configuration/password_in_config_map",
    "configuration/private_key_in_config_map",
    "configuration/token_in_config_map",
    "configuration/unverified_api_service",
];

/// The libraries the policies import, and the ones that policies written for Trivy expect.
pub const LIBRARIES: &[(&str, &str)] = &[
    ("k8s", include_str!("../policies/library/k8s.rego")),
    (
        "kubernetes",
        include_str!("../policies/library/kubernetes.rego"),
    ),
    ("rbac", include_str!("../policies/library/rbac.rego")),
    ("utils", include_str!("../policies/library/utils.rego")),
];
