# METADATA
# title: Priority of the system outside of kube-system
# description: >-
#   The classes `system-cluster-critical` and `system-node-critical` push every other pod aside.
#   They are for the parts that keep the cluster running.
# custom:
#   id: MST-W020
#   severity: MEDIUM
#   category: Workload
#   recommended_action: >-
#     Give the pod a `priorityClassName` of your own.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
package muster.workload.system_priority

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.object.metadata.namespace != "kube-system"
	class := kubernetes.pod_spec.priorityClassName
	class in {"system-cluster-critical", "system-node-critical"}
	result := kubernetes.about(sprintf("uses the priority class %s outside of kube-system", [class]))
}
