# METADATA
# title: Hosts in probes and lifecycle hooks
# description: >-
#   The kubelet sends probes and hooks from its node. With a host of their own they make it ask
#   any address it can reach, on behalf of the pod.
# custom:
#   id: MST-B007
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `host` from `httpGet` and `tcpSocket` of the probes and lifecycle hooks, so that
#     they ask the pod itself.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.host_probes

import rego.v1

import data.lib.kubernetes

places := [
	["livenessProbe"],
	["readinessProbe"],
	["startupProbe"],
	["lifecycle", "postStart"],
	["lifecycle", "preStop"],
]

deny contains result if {
	some container in kubernetes.all_containers
	some place in places
	some action in ["httpGet", "tcpSocket"]
	host := handler(container, place)[action].host
	not host in {"", null}
	field := concat(".", array.concat(place, [action]))
	result := kubernetes.about_container(container, sprintf("asks the host \"%v\" in %s", [host, field]))
}

handler(container, place) := container[place[0]] if count(place) == 1

handler(container, place) := container[place[0]][place[1]] if count(place) == 2
