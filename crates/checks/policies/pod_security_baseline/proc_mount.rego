# METADATA
# title: Unmasked /proc
# description: >-
#   The runtime hides parts of /proc that tell about the kernel or change it. An unmasked mount
#   shows them to the container. Pods in a user namespace of their own may do so.
# custom:
#   id: MST-B010
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `securityContext.procMount` from the container, set it to `Default`, or run the pod
#     with `hostUsers: false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.proc_mount

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.uses_user_namespace
	some container in kubernetes.all_containers
	mount := container.securityContext.procMount
	not mount in {"Default", null}
	result := kubernetes.about_container(container, sprintf("mounts /proc as %v", [mount]))
}
