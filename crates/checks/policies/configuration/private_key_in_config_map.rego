# METADATA
# title: Private key in a ConfigMap
# description: >-
#   ConfigMaps are read by many and encrypted by few. Whoever has the private key can be the one
#   it stands for.
# custom:
#   id: MST-C001
#   severity: CRITICAL
#   category: Configuration
#   recommended_action: >-
#     Move the value into a Secret, then replace it by a new one: it has been seen.
#   kinds: ConfigMap
#   url: https://kubernetes.io/docs/concepts/security/secrets-good-practices/
package muster.configuration.private_key_in_config_map

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.object.data)
	some key, value in kubernetes.object.data
	is_string(value)
	regex.match(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----`, value)
	result := kubernetes.about_key(key, "holds a private key")
}
