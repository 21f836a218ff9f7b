# METADATA
# title: ConfigMaps of others can be changed
# description: >-
#   Applications obey their ConfigMaps. Whoever can change all of them changes what others run;
#   in kube-system that is DNS and more.
# custom:
#   id: MST-A014
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Name the ConfigMaps that are needed in `resourceNames`, or remove `update`, `patch` and
#     `delete`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
package muster.rbac.change_configmaps

import rego.v1

import data.lib.rbac

resources := {"configmaps"}

verbs := {"update", "patch", "delete", "deletecollection"}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can change all ConfigMaps (%s)", [rbac.verbs_text(granted)]))
}
