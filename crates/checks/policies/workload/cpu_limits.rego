# METADATA
# title: CPU limit missing
# description: >-
#   Without a CPU limit a container can take all the time of its node, be it by a fault or by an
#   attacker who mines coins.
# custom:
#   id: MST-W005
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `resources.limits.cpu` of the container.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
package muster.workload.cpu_limits

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.declared_containers
	not has_limit(container)
	result := kubernetes.about_container(container, "has no CPU limit")
}

has_limit(container) if kubernetes.sets_resource(container, "limits", "cpu")
