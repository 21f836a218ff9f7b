# METADATA
# title: Service of type NodePort
# description: >-
#   A node port is open on every address of every node, often past the firewall that guards the
#   load balancer.
# custom:
#   id: MST-S003
#   severity: LOW
#   category: Service
#   recommended_action: >-
#     Use a Service of type ClusterIP behind an Ingress, a Gateway or a load balancer.
#   kinds: Service
#   url: https://kubernetes.io/docs/concepts/services-networking/service/#type-nodeport
package muster.service.node_port

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.object.spec.type == "NodePort"
	result := kubernetes.about("opens a port on every node")
}
