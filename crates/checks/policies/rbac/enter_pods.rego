# METADATA
# title: Pods can be entered
# description: >-
#   Running commands in a pod, attaching to it, or forwarding its ports gives everything that the
#   pod has: its files, its service account and its place in the network.
# custom:
#   id: MST-A006
#   severity: HIGH
#   category: Access Control
#   recommended_action: >-
#     Remove `pods/exec`, `pods/attach`, `pods/portforward` and `pods/ephemeralcontainers` from
#     the rule.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
package muster.rbac.enter_pods

import rego.v1

import data.lib.rbac

resources := {"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"}

verbs := {"create", "get", "update", "patch"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can enter pods (%s)", [rbac.verbs_text(granted)]))
}
