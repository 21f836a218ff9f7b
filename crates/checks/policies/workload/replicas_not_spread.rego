# METADATA
# title: Replicas not spread over nodes
# description: >-
#   Several replicas on one node, or in one zone, go down together with it.
# custom:
#   id: MST-W016
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Add `topologySpreadConstraints` or `affinity.podAntiAffinity` to the pod template.
#   kinds: Deployment, StatefulSet
#   url: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
package muster.workload.replicas_not_spread

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_number(kubernetes.object.spec.replicas)
	kubernetes.object.spec.replicas > 1
	not is_spread
	result := kubernetes.about("does not spread its replicas over nodes or zones")
}

is_spread if count(kubernetes.list(kubernetes.pod_spec.topologySpreadConstraints)) > 0

is_spread if {
	some strength in ["preferred", "required"]
	field := sprintf("%sDuringSchedulingIgnoredDuringExecution", [strength])
	count(kubernetes.list(kubernetes.pod_spec.affinity.podAntiAffinity[field])) > 0
}
