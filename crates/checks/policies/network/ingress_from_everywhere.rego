# METADATA
# title: Network policy open to everybody
# description: >-
#   A rule without peers, or for all addresses, lets in everybody: the policy is there but guards
#   nothing.
# custom:
#   id: MST-N001
#   severity: MEDIUM
#   category: Network
#   recommended_action: >-
#     Name the peers in `ingress[].from` of the NetworkPolicy, by `podSelector`,
#     `namespaceSelector` or a narrow `ipBlock`.
#   kinds: NetworkPolicy
#   url: https://kubernetes.io/docs/concepts/services-networking/network-policies/
package muster.network.ingress_from_everywhere

import rego.v1

import data.lib.kubernetes

everywhere := {"0.0.0.0/0", "::/0"}

deny contains result if {
	some index, rule in kubernetes.list(kubernetes.object.spec.ingress)
	is_object(rule)
	is_open(rule)
	path := sprintf("$.spec.ingress[%d]", [index])
	result := kubernetes.about_path(path, "allows traffic from everywhere")
}

is_open(rule) if not names_peers(rule)

is_open(rule) if {
	some peer in kubernetes.list(rule.from)
	peer.ipBlock.cidr in everywhere
	not has_exceptions(peer)
}

has_exceptions(peer) if count(kubernetes.list(peer.ipBlock.except)) > 0

# Without the field, with null and with an empty list every peer is meant.
names_peers(rule) if {
	peers := rule.from
	not peers in {[], null}
}
