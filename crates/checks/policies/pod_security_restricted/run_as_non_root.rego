# METADATA
# title: Running as non-root
# description: >-
#   Root in a container is root on the node as soon as a guard between them fails. With
#   runAsNonRoot the kubelet refuses to start a container as root. Pods in a user namespace of
#   their own may run as root.
# custom:
#   id: MST-R003
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Set `securityContext.runAsNonRoot` of the pod, or of every container, to `true`, and
#     nowhere to `false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.run_as_non_root

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.uses_user_namespace
	kubernetes.pod_spec.securityContext.runAsNonRoot == false
	result := kubernetes.about("allows its pod to run as root (runAsNonRoot is false)")
}

deny contains result if {
	not kubernetes.uses_user_namespace
	some container in kubernetes.all_containers
	not must_be_non_root(container)
	result := kubernetes.about_container(container, "may run as root (runAsNonRoot is not true)")
}

must_be_non_root(container) if kubernetes.security_setting(container, "runAsNonRoot") == true
