# METADATA
# title: Namespaces of the host
# description: >-
#   A pod in the network, process or IPC namespace of its node sees the traffic, the processes or
#   the shared memory of everything that runs there.
# custom:
#   id: MST-B003
#   severity: HIGH
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `hostNetwork`, `hostPID` and `hostIPC` from the pod, or set them to `false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.host_namespaces

import rego.v1

import data.lib.kubernetes

namespaces := {"hostIPC": "IPC", "hostNetwork": "network", "hostPID": "process"}

deny contains result if {
	some field, title in namespaces
	kubernetes.pod_spec[field] == true
	result := kubernetes.about(sprintf("uses the %s namespace of its host (%s)", [title, field]))
}
