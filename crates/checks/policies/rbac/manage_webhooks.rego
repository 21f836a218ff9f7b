# METADATA
# title: Admission webhooks can be managed
# description: >-
#   A mutating webhook rewrites, and every webhook reads, all objects that are admitted. Deleting
#   one switches off a guard of the cluster.
# custom:
#   id: MST-A010
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `mutatingwebhookconfigurations` and `validatingwebhookconfigurations` from the rule,
#     or name the ones that are needed in `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#control-admission-webhooks
package muster.rbac.manage_webhooks

import rego.v1

import data.lib.rbac

resources := {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}

verbs := {"create", "update", "patch", "delete", "deletecollection"}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	granted := rbac.granted_verbs(rule, "admissionregistration.k8s.io", resources, verbs)
	result := rbac.about_rule(index, sprintf("can manage admission webhooks (%s)", [rbac.verbs_text(granted)]))
}
