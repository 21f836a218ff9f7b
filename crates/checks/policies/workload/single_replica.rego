# METADATA
# title: Deployment with a single replica
# description: >-
#   With one replica the application is away whenever its node is drained or its pod moves.
# custom:
#   id: MST-W015
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `spec.replicas` of the Deployment to 2 or more, or let an autoscaler keep at least two.
#   kinds: Deployment
#   url: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#replicas
package muster.workload.single_replica

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.object.spec)
	not has_other_count
	result := kubernetes.about("runs a single replica")
}

has_other_count if {
	replicas := kubernetes.object.spec.replicas
	not replicas in {1, null}
}
