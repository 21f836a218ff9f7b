# METADATA
# title: Bound to the group system:masters
# description: >-
#   Members of system:masters pass every check of access, and no binding can take that from them.
#   Rights for this group only make more people use it.
# custom:
#   id: MST-A022
#   severity: CRITICAL
#   category: Access Control
#   recommended_action: >-
#     Take `system:masters` out of the `subjects` of the binding and use a group of your own.
#   kinds: RoleBinding, ClusterRoleBinding
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#least-privilege
package muster.rbac.system_masters

import rego.v1

import data.lib.rbac

deny contains result if {
	some index, subject in rbac.subjects
	subject.kind == "Group"
	subject.name == "system:masters"
	result := rbac.about_subject(index, "grants rights to the group system:masters")
}
