# METADATA
# title: No time to terminate
# description: >-
#   A grace period of zero kills the containers at once. They lose what they were writing, and a
#   StatefulSet may run the same pod twice.
# custom:
#   id: MST-W019
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Remove `terminationGracePeriodSeconds` from the pod, or set it to the time the application
#     needs to stop.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
package muster.workload.no_grace_period

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.pod_spec.terminationGracePeriodSeconds == 0
	result := kubernetes.about("gives its pod no time to terminate")
}
