# METADATA
# title: Network policy open to all namespaces
# description: >-
#   An empty namespace selector means every namespace, those of other teams and of tomorrow
#   included.
# custom:
#   id: MST-N003
#   severity: LOW
#   category: Network
#   recommended_action: >-
#     Give the `namespaceSelector` labels to match, or name the pods with a `podSelector` beside
#     it.
#   kinds: NetworkPolicy
#   url: https://kubernetes.io/docs/concepts/services-networking/network-policies/
package muster.network.all_namespaces

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some index, rule in kubernetes.list(kubernetes.object.spec.ingress)
	some peer in kubernetes.list(rule.from)
	peer.namespaceSelector == {}
	not selects_pods(peer)
	path := sprintf("$.spec.ingress[%d]", [index])
	result := kubernetes.about_path(path, "allows traffic from the pods of all namespaces")
}

selects_pods(peer) if {
	selector := peer.podSelector
	not selector in {{}, null}
}
