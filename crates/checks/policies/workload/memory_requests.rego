# METADATA
# title: Memory request missing
# description: >-
#   Without a memory request the scheduler may overfill a node, and this container is among the
#   first to be killed there.
# custom:
#   id: MST-W004
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `resources.requests.memory` of the container.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
package muster.workload.memory_requests

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.declared_containers
	not has_request(container)
	result := kubernetes.about_container(container, "has no memory request")
}

has_request(container) if kubernetes.sets_resource(container, "requests", "memory")

# The API server takes a limit for the request too.
has_request(container) if kubernetes.sets_resource(container, "limits", "memory")
