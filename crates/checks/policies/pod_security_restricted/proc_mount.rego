# METADATA
# title: Unmasked /proc, even in a user namespace
# description: >-
#   The Baseline standard lets pods in a user namespace of their own see all of /proc. The
#   Restricted standard does not: the masks stay for everybody.
# custom:
#   id: MST-R007
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Remove `securityContext.procMount` from the container, or set it to `Default`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.proc_mount

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.all_containers
	mount := container.securityContext.procMount
	not mount in {"Default", null}
	result := kubernetes.about_container(container, sprintf("mounts /proc as %v", [mount]))
}
