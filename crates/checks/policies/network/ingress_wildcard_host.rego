# METADATA
# title: Ingress for every host
# description: >-
#   A rule without a host, or for a wildcard, also takes requests for names that belong to
#   others.
# custom:
#   id: MST-N005
#   severity: LOW
#   category: Network
#   recommended_action: >-
#     Write the full name into `host` of each rule of the Ingress.
#   kinds: Ingress.networking.k8s.io
#   url: https://kubernetes.io/docs/concepts/services-networking/ingress/#hostname-wildcards
package muster.network.ingress_wildcard_host

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some index, rule in kubernetes.list(kubernetes.object.spec.rules)
	is_object(rule)
	not has_full_host(rule)
	path := sprintf("$.spec.rules[%d]", [index])
	result := kubernetes.about_path(path, "takes requests for any or a wildcard host")
}

has_full_host(rule) if {
	host := rule.host
	is_string(host)
	host != ""
	not startswith(host, "*")
}
