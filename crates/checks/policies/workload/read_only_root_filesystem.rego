# METADATA
# title: Root filesystem not read-only
# description: >-
#   On a writable root filesystem an attacker can change programs and leave tools behind. Windows
#   containers cannot be set so.
# custom:
#   id: MST-W009
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `securityContext.readOnlyRootFilesystem` of the container to `true` and mount an
#     `emptyDir` where it must write.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
package muster.workload.read_only_root_filesystem

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not kubernetes.is_windows
	some container in kubernetes.declared_containers
	not kubernetes.has_read_only_filesystem(container)
	result := kubernetes.about_container(container, "can write to its root filesystem")
}
