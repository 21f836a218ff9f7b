# METADATA
# title: Host ports
# description: >-
#   A host port opens the container on every address of its node, where network policies often do
#   not reach, and keeps other pods from that port.
# custom:
#   id: MST-B006
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `hostPort` from the ports of the container and publish it with a Service.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.host_ports

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.all_containers
	some port in kubernetes.list(container.ports)
	host_port := port.hostPort
	not host_port in {0, null}
	result := kubernetes.about_container(container, sprintf("listens on port %v of its host", [host_port]))
}
