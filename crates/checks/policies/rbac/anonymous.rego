# METADATA
# title: Rights for anonymous users
# description: >-
#   Everybody who can reach the API server is anonymous until they say who they are. What is
#   granted to anonymous users is granted to the network.
# custom:
#   id: MST-A017
#   severity: CRITICAL
#   category: Access Control
#   recommended_action: >-
#     Remove `system:anonymous` and `system:unauthenticated` from the `subjects` of the binding.
#   kinds: RoleBinding, ClusterRoleBinding
#   url: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
package muster.rbac.anonymous

import rego.v1

import data.lib.kubernetes
import data.lib.rbac

everyone := {"system:anonymous", "system:unauthenticated"}

deny contains result if {
	not is_cluster_info
	some index, subject in rbac.subjects
	subject.kind in {"User", "Group"}
	subject.name in everyone
	result := rbac.about_subject(index, sprintf("grants rights to %s", [subject.name]))
}

# kubeadm lets nodes that join read one ConfigMap, before they have a certificate.
default is_cluster_info := false

is_cluster_info if {
	kubernetes.object.metadata.namespace == "kube-public"
	kubernetes.object.roleRef.kind == "Role"
	kubernetes.object.roleRef.name == "kubeadm:bootstrap-signer-clusterinfo"
}
