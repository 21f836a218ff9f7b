# METADATA
# title: Roles can be escalated
# description: >-
#   Kubernetes lets nobody grant more than they have, except for the verbs escalate and bind.
#   With them a user becomes cluster administrator.
# custom:
#   id: MST-A007
#   severity: CRITICAL
#   category: Access Control
#   recommended_action: >-
#     Remove the verbs `escalate` and `bind` from the rule, or name the roles that may be bound
#     in `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#escalate-verb
package muster.rbac.escalate_or_bind

import rego.v1

import data.lib.rbac

resources := {"roles", "clusterroles"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "rbac.authorization.k8s.io", resources, verbs(rule))
	result := rbac.about_rule(index, sprintf("can grant more than it has (%s)", [rbac.verbs_text(granted)]))
}

verbs(rule) := {"escalate"} if binds_named_roles(rule)

verbs(rule) := {"escalate", "bind"} if not binds_named_roles(rule)

# To bind a few named roles is how rights are handed on safely.
binds_named_roles(rule) if {
	rbac.names_objects(rule)
	not "cluster-admin" in rule.resourceNames
}
