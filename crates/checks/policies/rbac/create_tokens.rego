# METADATA
# title: Service account tokens can be created
# description: >-
#   Whoever can create tokens can become every service account in reach, and has what was granted
#   to it.
# custom:
#   id: MST-A013
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `serviceaccounts/token` from the rule, or name the accounts in `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#token-request
package muster.rbac.create_tokens

import rego.v1

import data.lib.rbac

resources := {"serviceaccounts/token"}

verbs := {"create"}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can create tokens of service accounts (%s)", [rbac.verbs_text(granted)]))
}
