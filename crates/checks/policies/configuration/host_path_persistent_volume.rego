# METADATA
# title: PersistentVolume on a path of the host
# description: >-
#   Pods reach the files of the node through such a volume, although the Pod Security Standards
#   forbid hostPath volumes to them.
# custom:
#   id: MST-C004
#   severity: MEDIUM
#   category: Configuration
#   recommended_action: >-
#     Use a `local` or `csi` volume instead of `spec.hostPath`.
#   kinds: PersistentVolume
#   url: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#types-of-persistent-volumes
package muster.configuration.host_path_persistent_volume

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.object.spec.hostPath != null
	result := kubernetes.about("is a path of the host")
}
