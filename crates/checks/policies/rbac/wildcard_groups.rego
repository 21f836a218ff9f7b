# METADATA
# title: All API groups granted
# description: >-
#   A rule for all API groups also grants resources of the same name in groups that are installed
#   later.
# custom:
#   id: MST-A003
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Name the `apiGroups` that are needed in the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
package muster.rbac.wildcard_groups

import rego.v1

import data.lib.kubernetes
import data.lib.rbac

deny contains result if {
	some index, rule in rbac.rules
	"*" in kubernetes.list(rule.apiGroups)
	result := rbac.about_rule(index, "grants all API groups")
}
