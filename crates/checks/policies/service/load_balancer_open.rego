# METADATA
# title: Load balancer open to all addresses
# description: >-
#   A load balancer without source ranges is open to the whole Internet, unless it is an internal
#   one.
# custom:
#   id: MST-S002
#   severity: LOW
#   category: Service
#   recommended_action: >-
#     List the addresses of its users in `spec.loadBalancerSourceRanges`, or make the load
#     balancer internal with the annotation of your provider.
#   kinds: Service
#   url: https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer
package muster.service.load_balancer_open

import rego.v1

import data.lib.kubernetes

# The annotations that make a load balancer internal, with the values that do.
internal_annotations := {
	"cloud.google.com/load-balancer-type": {"Internal"},
	"networking.gke.io/load-balancer-type": {"Internal"},
	"service.beta.kubernetes.io/aws-load-balancer-internal": {"true", "0.0.0.0/0"},
	"service.beta.kubernetes.io/aws-load-balancer-scheme": {"internal"},
	"service.beta.kubernetes.io/azure-load-balancer-internal": {"true"},
	"service.beta.kubernetes.io/openstack-internal-load-balancer": {"true"},
}

deny contains result if {
	kubernetes.object.spec.type == "LoadBalancer"
	not is_internal
	not is_narrow
	result := kubernetes.about("opens a load balancer to all addresses")
}

is_internal if {
	some key, values in internal_annotations
	kubernetes.object.metadata.annotations[key] in values
}

is_narrow if {
	ranges := kubernetes.list(kubernetes.object.spec.loadBalancerSourceRanges)
	count(ranges) > 0
	count({range | some range in ranges; range in {"0.0.0.0/0", "::/0"}}) == 0
}
