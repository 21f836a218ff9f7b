# METADATA
# title: Windows HostProcess containers
# description: >-
#   A HostProcess container runs directly on its Windows node, with access to everything there.
# custom:
#   id: MST-B002
#   severity: CRITICAL
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `securityContext.windowsOptions.hostProcess` from the pod and its containers, or set
#     it to `false`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.host_process

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.pod_spec.securityContext.windowsOptions.hostProcess == true
	result := kubernetes.about("runs its containers as processes of the Windows host")
}

deny contains result if {
	some container in kubernetes.all_containers
	container.securityContext.windowsOptions.hostProcess == true
	result := kubernetes.about_container(container, "runs as a process of the Windows host")
}
