# METADATA
# title: Liveness probe missing
# description: >-
#   Without a liveness probe a container that hangs stays as it is until somebody notices.
# custom:
#   id: MST-W007
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Add a `livenessProbe` to the container.
#   kinds: Pod, ReplicationController, ReplicaSet, StatefulSet, DaemonSet, Deployment
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/
package muster.workload.liveness_probe

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not runs_to_completion
	some container in kubernetes.main_containers
	not has_probe(container)
	result := kubernetes.about_container(container, "has no liveness probe")
}

# Pods of Jobs and others that end by themselves are not asked.
default runs_to_completion := false

runs_to_completion if kubernetes.pod_spec.restartPolicy in {"Never", "OnFailure"}

has_probe(container) if is_object(container.livenessProbe)
