# METADATA
# title: Memory limit missing
# description: >-
#   Without a memory limit a container can take all the memory of its node, and others are killed
#   for it.
# custom:
#   id: MST-W006
#   severity: MEDIUM
#   category: Workload
#   recommended_action: >-
#     Set `resources.limits.memory` of the container.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
package muster.workload.memory_limits

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.declared_containers
	not has_limit(container)
	result := kubernetes.about_container(container, "has no memory limit")
}

has_limit(container) if kubernetes.sets_resource(container, "limits", "memory")
