# METADATA
# title: Persistent volumes can be created
# description: >-
#   A PersistentVolume can be a path of the host. Whoever creates one reads and writes nodes,
#   past the Pod Security Standards.
# custom:
#   id: MST-A020
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Remove `create`, `update` and `patch` of `persistentvolumes` from the rule; users need
#     claims only.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#persistent-volume-creation
package muster.rbac.create_volumes

import rego.v1

import data.lib.rbac

resources := {"persistentvolumes"}

verbs := {"create", "update", "patch"}

deny contains result if {
	some index, rule in rbac.rules
	granted := rbac.granted_verbs(rule, "", resources, verbs)
	result := rbac.about_rule(index, sprintf("can create persistent volumes (%s)", [rbac.verbs_text(granted)]))
}
