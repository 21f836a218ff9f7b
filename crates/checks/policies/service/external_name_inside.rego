# METADATA
# title: External name that leads inside
# description: >-
#   An external name is followed by whoever asks for it, such as an ingress controller. One that
#   leads to the machine itself or to the metadata of the cloud shows things meant for nobody.
# custom:
#   id: MST-S004
#   severity: HIGH
#   category: Service
#   recommended_action: >-
#     Set `spec.externalName` to a name outside of the cluster.
#   kinds: Service
#   url: https://kubernetes.io/docs/concepts/services-networking/service/#externalname
package muster.service.external_name_inside

import rego.v1

import data.lib.kubernetes

names := {"localhost", "metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"}

deny contains result if {
	kubernetes.object.spec.type == "ExternalName"
	is_string(kubernetes.object.spec.externalName)
	name := trim_suffix(lower(kubernetes.object.spec.externalName), ".")
	leads_inside(name)
	result := kubernetes.about(sprintf("leads to %s", [name]))
}

leads_inside(name) if name in names

leads_inside(name) if endswith(name, ".localhost")

# Loopback and link-local addresses; Alibaba Cloud keeps its metadata at the last one.
leads_inside(name) if {
	regex.match(`^(127[.]|169[.]254[.]|0[.]0[.]0[.]0$|::1$|fd00:ec2::254$|100[.]100[.]100[.]200$)`, name)
}
