# METADATA
# title: Running as the user root
# description: >-
#   A container that asks for user 0 runs as root, whatever its image says. Pods in a user
#   namespace of their own may do so.
# custom:
#   id: MST-R004
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Set `securityContext.runAsUser` of the pod and its containers to another user than 0, or
#     leave it out.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.run_as_user

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.uses_user_namespace
	kubernetes.pod_spec.securityContext.runAsUser == 0
	result := kubernetes.about("runs its pod as the user root (runAsUser is 0)")
}

deny contains result if {
	not kubernetes.uses_user_namespace
	some container in kubernetes.all_containers
	container.securityContext.runAsUser == 0
	result := kubernetes.about_container(container, "runs as the user root (runAsUser is 0)")
}
