# METADATA
# title: Bound to cluster-admin
# description: >-
#   The role cluster-admin may do everything, now and in every later version. One stolen token of
#   such an account is the end of the cluster.
# custom:
#   id: MST-A016
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Bind a role with just the rights that are needed in `roleRef`.
#   kinds: RoleBinding, ClusterRoleBinding
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#least-privilege
package muster.rbac.cluster_admin

import rego.v1

import data.lib.kubernetes
import data.lib.rbac

deny contains result if {
	not rbac.is_shipped
	kubernetes.object.roleRef.kind == "ClusterRole"
	kubernetes.object.roleRef.name == "cluster-admin"
	result := kubernetes.about("grants the role cluster-admin")
}
