# METADATA
# title: Rights for every authenticated user
# description: >-
#   Every user and every service account of the cluster is in this group; with some providers,
#   every account of the provider.
# custom:
#   id: MST-A018
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Bind a group of your own instead of `system:authenticated` in the `subjects` of the
#     binding.
#   kinds: RoleBinding, ClusterRoleBinding
#   url: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
package muster.rbac.authenticated

import rego.v1

import data.lib.rbac

everyone := {"system:authenticated"}

deny contains result if {
	some index, subject in rbac.subjects
	subject.kind in {"User", "Group"}
	subject.name in everyone
	result := rbac.about_subject(index, sprintf("grants rights to everybody in %s", [subject.name]))
}
