# METADATA
# title: Workloads can be created
# description: >-
#   Whoever can create or change pods, or anything that makes them, can mount every Secret,
#   ConfigMap and volume of the namespace and use each of its service accounts.
# custom:
#   id: MST-A005
#   severity: MEDIUM
#   category: Access Control
#   recommended_action: >-
#     Leave `create`, `update` and `patch` of workloads to those who deploy, and enforce a Pod
#     Security Standard in the namespace.
#   kinds: Role, ClusterRole
#   url: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#workload-creation
package muster.rbac.create_workloads

import rego.v1

import data.lib.rbac

workloads := {
	"": {"pods", "replicationcontrollers"},
	"apps": {"daemonsets", "deployments", "replicasets", "statefulsets"},
	"batch": {"cronjobs", "jobs"},
}

deny contains result if {
	some index, rule in rbac.rules
	some group, resources in workloads
	verbs := rbac.granted_verbs(rule, group, resources, {"create", "update", "patch"})
	result := rbac.about_rule(index, sprintf("can create or change workloads (%s)", [rbac.verbs_text(verbs)]))
}
