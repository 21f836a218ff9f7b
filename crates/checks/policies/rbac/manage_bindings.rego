# METADATA
# title: Role bindings can be managed
# description: >-
#   Whoever writes bindings decides who has which rights, up to their own.
# custom:
#   id: MST-A009
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `create`, `update` and `patch` of role bindings from the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks
package muster.rbac.manage_bindings

import rego.v1

import data.lib.rbac

resources := {"rolebindings", "clusterrolebindings"}

verbs := {"create", "update", "patch"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "rbac.authorization.k8s.io", resources, verbs)
	result := rbac.about_rule(index, sprintf("can manage role bindings (%s)", [rbac.verbs_text(granted)]))
}
