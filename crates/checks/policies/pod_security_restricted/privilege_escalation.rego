# METADATA
# title: Privilege escalation
# description: >-
#   A process may gain more privileges than its parent, as set-user-ID programs do, unless this
#   is forbidden. Then an attacker cannot use them to become root. Windows pods are not
#   concerned.
# custom:
#   id: MST-R002
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Set `securityContext.allowPrivilegeEscalation` of every container to `false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.privilege_escalation

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.is_windows
	some container in kubernetes.all_containers
	not kubernetes.forbids_privilege_escalation(container)
	result := kubernetes.about_container(container, "may gain privileges that its parent process does not have")
}
