# METADATA
# title: Certificates can be approved
# description: >-
#   Whoever approves certificate signing requests can make themselves a client certificate of any
#   user or node.
# custom:
#   id: MST-A012
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `certificatesigningrequests/approval` and the verbs `approve` and `sign` of
#     `signers` from the rule, or name the signer in `resourceNames`.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#csrs-and-certificate-issuing
package muster.rbac.approve_certificates

import rego.v1

import data.lib.rbac

group := "certificates.k8s.io"

deny contains result if {
	some index, rule in rbac.rules
	rbac.granted_verbs(rule, group, {"certificatesigningrequests/approval"}, {"update", "patch"})
	result := rbac.about_rule(index, "can approve certificate signing requests")
}

deny contains result if {
	some index, rule in rbac.rules
	not rbac.names_objects(rule)
	rbac.granted_verbs(rule, group, {"signers"}, {"approve", "sign"})
	result := rbac.about_rule(index, "can use every certificate signer")
}
