# METADATA
# title: All verbs granted
# description: >-
#   A rule for all verbs also grants those nobody thought of: deleting everything, escalating,
#   impersonating, and verbs that come with the next version.
# custom:
#   id: MST-A001
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Name the `verbs` that are needed in the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
package muster.rbac.wildcard_verbs

import rego.v1

import data.lib.kubernetes
import data.lib.rbac

deny contains result if {
	some index, rule in rbac.rules
	"*" in kubernetes.list(rule.verbs)
	result := rbac.about_rule(index, "grants all verbs")
}
