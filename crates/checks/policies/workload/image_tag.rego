# METADATA
# title: Image tag latest or missing
# description: >-
#   The tag `latest`, which also stands where none is given, means another image every week.
#   Nobody can tell which one runs, nor go back to the one before.
# custom:
#   id: MST-W001
#   severity: MEDIUM
#   category: Workload
#   recommended_action: >-
#     Give the image of the container a tag of its own or, better, a digest.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/containers/images/
package muster.workload.image_tag

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.all_containers
	image := container.image
	is_string(image)
	image != ""
	not kubernetes.image_has_digest(image)
	not has_fixed_tag(image)
	result := kubernetes.about_container(container, sprintf("uses the latest image of %s", [image]))
}

has_fixed_tag(image) if {
	tag := kubernetes.image_tag(image)
	not tag in {"", "latest"}
}
