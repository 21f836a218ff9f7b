# METADATA
# title: Privileged containers
# description: >-
#   A privileged container has every capability and every device of its node. Whoever takes it
#   over has the node.
# custom:
#   id: MST-B001
#   severity: CRITICAL
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `securityContext.privileged` from the container, or set it to `false`, and add only
#     the capabilities it needs.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.privileged

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.all_containers
	container.securityContext.privileged == true
	result := kubernetes.about_container(container, "runs privileged")
}
