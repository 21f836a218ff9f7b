# METADATA
# title: Image not pinned by digest
# description: >-
#   A tag can be moved to another image at any time. A digest names exactly one, so what was
#   checked is what runs.
# custom:
#   id: MST-W002
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Add the digest to the image of the container, as in `app:1.4.2@sha256:…`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/containers/images/
package muster.workload.image_digest

import rego.v1

import data.lib.kubernetes

deny contains result if {
	some container in kubernetes.all_containers
	image := container.image
	is_string(image)
	image != ""
	not kubernetes.image_has_digest(image)
	result := kubernetes.about_container(container, sprintf("uses the image %s without a digest", [image]))
}
