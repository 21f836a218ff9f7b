# METADATA
# title: Ingress without TLS
# description: >-
#   Without TLS everybody on the way reads and changes what users send, their passwords included.
# custom:
#   id: MST-N004
#   severity: MEDIUM
#   category: Network
#   recommended_action: >-
#     Add the host and the Secret of its certificate to `spec.tls` of the Ingress.
#   kinds: Ingress.networking.k8s.io
#   url: https://kubernetes.io/docs/concepts/services-networking/ingress/#tls
package muster.network.ingress_without_tls

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.object.spec)
	not has_tls
	result := kubernetes.about("serves without TLS")
}

has_tls if count(kubernetes.list(kubernetes.object.spec.tls)) > 0
