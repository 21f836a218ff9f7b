# METADATA
# title: Low user id
# description: >-
#   User ids below 10000 are often in use on the node as well. Should the container break out, it
#   has the rights of that user there. Pods in a user namespace of their own are not concerned.
# custom:
#   id: MST-W017
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `securityContext.runAsUser` of the pod or container to 10000 or more.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
package muster.workload.low_user_id

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.uses_user_namespace
	some container in kubernetes.all_containers
	id := kubernetes.security_setting(container, "runAsUser")
	is_number(id)
	id < 10000
	result := kubernetes.about_container(container, sprintf("runs with the low user id %d", [id]))
}
