# METADATA
# title: Network policy lets everything out
# description: >-
#   A rule without peers, or for all addresses, lets a pod that was taken over call home, scan
#   the network and carry data away.
# custom:
#   id: MST-N002
#   severity: LOW
#   category: Network
#   recommended_action: >-
#     Name the peers in `egress[].to` of the NetworkPolicy, by `podSelector`, `namespaceSelector`
#     or a narrow `ipBlock`.
#   kinds: NetworkPolicy
#   url: https://kubernetes.io/docs/concepts/services-networking/network-policies/
package muster.network.egress_to_everywhere

import rego.v1

import data.lib.kubernetes

everywhere := {"0.0.0.0/0", "::/0"}

deny contains result if {
	some index, rule in kubernetes.list(kubernetes.object.spec.egress)
	is_object(rule)
	is_open(rule)
	path := sprintf("$.spec.egress[%d]", [index])
	result := kubernetes.about_path(path, "allows traffic to everywhere")
}

is_open(rule) if not names_peers(rule)

is_open(rule) if {
	some peer in kubernetes.list(rule.to)
	peer.ipBlock.cidr in everywhere
	not has_exceptions(peer)
}

has_exceptions(peer) if count(kubernetes.list(peer.ipBlock.except)) > 0

# Without the field, with null and with an empty list every peer is meant.
names_peers(rule) if {
	peers := rule.to
	not peers in {[], null}
}
