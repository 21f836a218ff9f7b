# METADATA
# title: All resources granted
# description: >-
#   A rule for all resources also grants Secrets, and every kind that will ever be installed.
# custom:
#   id: MST-A002
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Name the `resources` that are needed in the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
package muster.rbac.wildcard_resources

import rego.v1

import data.lib.kubernetes
import data.lib.rbac

deny contains result if {
	some index, rule in rbac.rules
	"*" in kubernetes.list(rule.resources)
	result := rbac.about_rule(index, "grants all resources")
}
