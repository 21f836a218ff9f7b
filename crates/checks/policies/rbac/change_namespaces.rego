# METADATA
# title: Namespaces can be changed
# description: >-
#   The labels of a namespace say which Pod Security Standard holds there. Whoever changes them
#   lifts the standard.
# custom:
#   id: MST-A021
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Remove `update` and `patch` of `namespaces` from the rule, or name the namespaces in
#     `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#namespace-modification
package muster.rbac.change_namespaces

import rego.v1

import data.lib.rbac

resources := {"namespaces"}

verbs := {"update", "patch"}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can change namespaces (%s)", [rbac.verbs_text(granted)]))
}
