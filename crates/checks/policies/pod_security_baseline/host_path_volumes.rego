# METADATA
# title: HostPath volumes
# description: >-
#   A hostPath volume shows files of the node to the pod, past the checks that guard other
#   volumes. With the wrong path it hands over the node.
# custom:
#   id: MST-B005
#   severity: HIGH
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Use another volume type instead of `hostPath` in the volumes of the pod, such as
#     `emptyDir`, `configMap` or a PersistentVolumeClaim.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.host_path_volumes

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some volume in kubernetes.volumes
	volume.hostPath != null
	name := kubernetes.name_of(volume)
	result := kubernetes.about(sprintf("has a path of its host as volume \"%s\"", [name]))
}
