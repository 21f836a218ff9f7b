# METADATA
# title: Ingress with a configuration snippet
# description: >-
#   A snippet is written into the configuration of the controller as it is. Whoever can write one
#   can read the Secrets of all namespaces through it (CVE-2021-25742).
# custom:
#   id: MST-N006
#   severity: HIGH
#   category: Network
#   recommended_action: >-
#     Remove the snippet annotations from the Ingress and use the other annotations of the
#     controller.
#   kinds: Ingress.networking.k8s.io
#   url: https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/#configuration-snippet
package muster.network.ingress_snippet

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.object.metadata.annotations)
	some key, _ in kubernetes.object.metadata.annotations
	regex.match(`^nginx[.](ingress[.]kubernetes[.]io|org)/[a-z-]*snippets?$`, key)
	result := kubernetes.about(sprintf("puts a snippet into the configuration of its controller (%s)", [key]))
}
