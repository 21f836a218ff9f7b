# METADATA
# title: Low group id
# description: >-
#   Group ids below 10000 are often in use on the node as well. Should the container break out,
#   it has the rights of that group there. Pods in a user namespace of their own are not
#   concerned.
# custom:
#   id: MST-W018
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `securityContext.runAsGroup` of the pod or container to 10000 or more.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
package muster.workload.low_group_id

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.uses_user_namespace
	some container in kubernetes.all_containers
	id := kubernetes.security_setting(container, "runAsGroup")
	is_number(id)
	id < 10000
	result := kubernetes.about_container(container, sprintf("runs with the low group id %d", [id]))
}
