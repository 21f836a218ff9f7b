# METADATA
# title: Seccomp profile required
# description: >-
#   Without a seccomp profile a container may make every system call, and exploits of the kernel
#   start with rare ones. Windows pods are not concerned.
# custom:
#   id: MST-R005
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Set `securityContext.seccompProfile.type` of the pod, or of every container, to
#     `RuntimeDefault` or `Localhost`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.seccomp

import rego.v1

import data.lib.kubernetes

allowed_types := {"RuntimeDefault", "Localhost"}

deny contains result if {
	not kubernetes.is_windows
	type := kubernetes.pod_spec.securityContext.seccompProfile.type
	type != null
	not type in allowed_types
	result := kubernetes.about(sprintf("sets the seccomp profile %v for its pod", [type]))
}

deny contains result if {
	not kubernetes.is_windows
	some container in kubernetes.all_containers
	not is_confined(container)
	result := kubernetes.about_container(container, "runs without an allowed seccomp profile")
}

is_confined(container) if kubernetes.security_setting(container, "seccompProfile").type in allowed_types
