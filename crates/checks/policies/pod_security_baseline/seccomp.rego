# METADATA
# title: Seccomp switched off
# description: >-
#   Seccomp keeps a container from system calls that hardly any program needs and many exploits
#   do. `Unconfined` switches it off.
# custom:
#   id: MST-B011
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Set `securityContext.seccompProfile.type` of the pod or container to `RuntimeDefault` or
#     `Localhost`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.seccomp

import rego.v1

import data.lib.kubernetes

allowed_types := {"RuntimeDefault", "Localhost", null}

deny contains result if {
	type := kubernetes.pod_spec.securityContext.seccompProfile.type
	not type in allowed_types
	result := kubernetes.about(sprintf("sets the seccomp profile %v for its pod", [type]))
}

deny contains result if {
	some container in kubernetes.all_containers
	type := container.securityContext.seccompProfile.type
	not type in allowed_types
	result := kubernetes.about_container(container, sprintf("sets the seccomp profile %v", [type]))
}
