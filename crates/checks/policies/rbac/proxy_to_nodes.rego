# METADATA
# title: Nodes can be reached by proxy
# description: >-
#   The proxy of a node leads to its kubelet and so into every pod there, past the audit log and
#   past admission.
# custom:
#   id: MST-A011
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `nodes/proxy` from the rule; `nodes/metrics` and `nodes/stats` are enough for
#     monitoring.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#access-to-proxy-subresource-of-nodes
package muster.rbac.proxy_to_nodes

import rego.v1

import data.lib.rbac

resources := {"nodes/proxy"}

verbs := {"get", "create", "update", "patch", "delete"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can reach kubelets through nodes/proxy (%s)", [rbac.verbs_text(granted)]))
}
