# METADATA
# title: Capabilities not dropped
# description: >-
#   Runtimes grant every container a set of capabilities that few programs need. Dropping all of
#   them, and adding back at most NET_BIND_SERVICE, leaves an attacker less to work with. Windows
#   pods are not concerned.
# custom:
#   id: MST-R006
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Set `securityContext.capabilities.drop` of every container to `["ALL"]` and add nothing but
#     `NET_BIND_SERVICE`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.capabilities

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.is_windows
	some container in kubernetes.all_containers
	not kubernetes.dropped_capability(container, "ALL")
	result := kubernetes.about_container(container, "does not drop all capabilities")
}

deny contains result if {
	not kubernetes.is_windows
	some container in kubernetes.all_containers
	some capability in kubernetes.list(container.securityContext.capabilities.add)
	capability != "NET_BIND_SERVICE"
	result := kubernetes.about_container(container, sprintf("adds the capability %v", [capability]))
}
