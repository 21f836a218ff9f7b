# METADATA
# title: Others can be impersonated
# description: >-
#   Impersonation makes a user into any other one, such as a cluster administrator, and the audit
#   log shows the wrong name.
# custom:
#   id: MST-A008
#   severity: CRITICAL
#   category: Access Control
#   recommended_action: >-
#     Remove the verb `impersonate` from the rule, or name the users and groups in
#     `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#impersonate-verb
package muster.rbac.impersonate

import rego.v1

import data.lib.rbac

identities := {"": {"users", "groups", "serviceaccounts"}, "authentication.k8s.io": {"uids", "userextras"}}

deny contains result if {
	some index, rule in rbac.rules
	not names_harmless(rule)
	some group, resources in identities
	rbac.granted_verbs(rule, group, resources, {"impersonate"})
	result := rbac.about_rule(index, "can impersonate others")
}

names_harmless(rule) if {
	rbac.names_objects(rule)
	not "system:masters" in rule.resourceNames
}
