# METADATA
# title: Volume types
# description: >-
#   Only some volume types are safe in the hands of every user. Others reach the node or a
#   storage system past PersistentVolumes and their checks.
# custom:
#   id: MST-R001
#   severity: MEDIUM
#   category: Pod Security Standards (Restricted)
#   recommended_action: >-
#     Use one of `configMap`, `csi`, `downwardAPI`, `emptyDir`, `ephemeral`, `image`,
#     `persistentVolumeClaim`, `projected` and `secret` in the volumes of the pod.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
package muster.pod_security_restricted.volume_types

import rego.v1

import data.lib.kubernetes

allowed := {
	"configMap",
	"csi",
	"downwardAPI",
	"emptyDir",
	"ephemeral",
	"image",
	"persistentVolumeClaim",
	"projected",
	"secret",
}

# A volume without any source is fine: the API server makes it an emptyDir.
deny contains result if {
	some volume in kubernetes.volumes
	types := {field | some field, source in volume; field != "name"; source != null}
	count(types) > 0
	count(types & allowed) == 0
	result := kubernetes.about(sprintf(
		"has the volume \"%s\" of type %s",
		[kubernetes.name_of(volume), concat(", ", sort(types))],
	))
}
