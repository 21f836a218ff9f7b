# METADATA
# title: Secrets readable
# description: >-
#   Whoever may get, list or watch Secrets has every password and token in reach. Listing shows
#   the contents too.
# custom:
#   id: MST-A004
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `secrets` from the rule, or name the ones that are needed in `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#listing-secrets
package muster.rbac.read_secrets

import rego.v1

import data.lib.rbac

resources := {"secrets"}

verbs := {"get", "list", "watch"}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can read secrets (%s)", [rbac.verbs_text(granted)]))
}
