# METADATA
# title: Logs and events can be deleted
# description: >-
#   Events and logs tell what happened. Whoever deletes them covers the traces of an attack.
# custom:
#   id: MST-A015
#   severity: LOW
#   category: Access Control
#   recommended_action: >-
#     Remove `delete` and `deletecollection` of `events` and `pods/log` from the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
package muster.rbac.delete_traces

import rego.v1

import data.lib.rbac

resources := {"events", "pods/log"}

verbs := {"delete", "deletecollection"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can delete logs or events (%s)", [rbac.verbs_text(granted)]))
}
