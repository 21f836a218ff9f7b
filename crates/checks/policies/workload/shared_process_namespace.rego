# METADATA
# title: Process namespace shared between containers
# description: >-
#   Containers that share a process namespace see and signal the processes of each other, and
#   read their environment and files through /proc.
# custom:
#   id: MST-W022
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Remove `shareProcessNamespace` from the pod, or set it to `false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/share-process-namespace/
package muster.workload.shared_process_namespace

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.pod_spec.shareProcessNamespace == true
	result := kubernetes.about("shares one process namespace between its containers")
}
