# METADATA
# title: Rights for a default service account
# description: >-
#   Every pod that names no service account runs as `default`. Rights for it reach pods nobody
#   thought of.
# custom:
#   id: MST-A019
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Make a service account for the workload and bind that in the `subjects` of the binding.
#   kinds: RoleBinding, ClusterRoleBinding
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#hardening
package muster.rbac.default_service_account

import rego.v1

import data.lib.rbac

deny contains result if {
	some index, subject in rbac.subjects
	is_default_account(subject)
	result := rbac.about_subject(index, "grants rights to a default service account")
}

is_default_account(subject) if {
	subject.kind == "ServiceAccount"
	subject.name == "default"
}

# The same account, written as the user that it is to the authorizer.
is_default_account(subject) if {
	subject.kind == "User"
	regex.match(`^system:serviceaccount:[^:]+:default$`, subject.name)
}
