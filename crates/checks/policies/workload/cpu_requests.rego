# METADATA
# title: CPU request missing
# description: >-
#   Without a CPU request the scheduler does not know what a container needs, and gives it
#   nothing when its node is busy.
# custom:
#   id: MST-W003
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `resources.requests.cpu` of the container.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
package muster.workload.cpu_requests

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.declared_containers
	not has_request(container)
	result := kubernetes.about_container(container, "has no CPU request")
}

has_request(container) if kubernetes.sets_resource(container, "requests", "cpu")

# The API server takes a limit for the request too.
has_request(container) if kubernetes.sets_resource(container, "limits", "cpu")
