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

/// The edits that a mistyped name may be away from the name that is meant.
const MAX_EDITS: usize = 2;
/// Longer texts are the name of no policy.
const MAX_NAME: usize = 100;

impl Builtin {
    /// The identifier in its METADATA, such as `MST-W001`.
    pub fn id(&self) -> &'static str {
        let mut lines = self.text.lines().take_while(|line| line.starts_with('#'));
        let id = lines.find_map(|line| line.strip_prefix("#   id:"));
        id.map_or("", str::trim)
    }
}

/// Refuses a name that no built-in policy has and that cannot be meant for a policy in a ConfigMap:
/// one that looks like ours, or is a typing error away from ours. The error names the policy that
/// is probably meant.
pub fn check_name(name: &str) -> Result<(), String> {
    let ours = || POLICIES.iter().flat_map(|one| [one.id(), one.name]);
    if ours().any(|known| known == name) || name.len() > MAX_NAME {
        return Ok(());
    }
    let distance = |known: &'static str| (edits(name, known), known);
    let nearest = ours().map(distance).min();
    let nearest = nearest.filter(|(edits, _)| *edits <= MAX_EDITS);
    let area = |name: &str| name.split_once('/').map(|(area, _)| area.to_owned());
    let is_ours = name.to_ascii_uppercase().starts_with("MST-")
        || area(name).is_some_and(|of| ours().any(|known| area(known).as_ref() == Some(&of)));
    match nearest {
        Some((_, known)) => Err(format!(
            "no check is called {name:?}; did you mean {known}?"
        )),
        None if is_ours => Err(format!("no built-in check is called {name:?}")),
        None => Ok(()),
    }
}

/// How many letters have to be inserted, deleted or replaced; case does not matter.
fn edits(left: &str, right: &str) -> usize {
    let (left, right) = (left.to_lowercase(), right.to_lowercase());
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, one) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(one != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_check_is_refused_with_the_one_that_is_meant() {
        for policy in POLICIES {
            assert!(policy.id().starts_with("MST-"), "{}", policy.name);
            assert_eq!(check_name(policy.id()), Ok(()));
            assert_eq!(check_name(policy.name), Ok(()));
        }
        for (name, expected) in [
            ("MST-W0001", Some("did you mean MST-W001?")),
            ("mst-w001", Some("did you mean MST-W001?")),
            (
                "workload/image_tags",
                Some("did you mean workload/image_tag?"),
            ),
            ("MST-NOTHING-LIKE-IT", Some("no built-in check is called")),
            (
                "workload/nothing_like_it",
                Some("no built-in check is called"),
            ),
            // It may be the name of a policy in a ConfigMap.
            ("team-labels", None),
            ("team/labels", None),
            ("", None),
        ] {
            match (check_name(name), expected) {
                (Ok(()), None) => {}
                (Err(told), Some(expected)) => assert!(told.contains(expected), "{name}: {told}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(check_name(&"x".repeat(100_000)), Ok(()));
    }
}
