# METADATA
# title: Service with external IPs
# description: >-
#   External IPs take the traffic of the whole cluster to that address, whoever it belongs to. So
#   a user of one namespace can listen to the others (CVE-2020-8554).
# custom:
#   id: MST-S001
#   severity: HIGH
#   category: Service
#   recommended_action: >-
#     Remove `spec.externalIPs` and use a Service of type LoadBalancer, an Ingress or a Gateway.
#   kinds: Service
#   url: https://kubernetes.io/docs/concepts/services-networking/service/#external-ips
package muster.service.external_ips

import rego.v1

import data.lib.kubernetes

deny contains result if {
	count(kubernetes.list(kubernetes.object.spec.externalIPs)) > 0
	result := kubernetes.about("takes over external IP addresses")
}
