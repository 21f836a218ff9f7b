# METADATA
# title: Downloaded script run at start
# description: >-
#   A script that is fetched and run when the container starts was never part of the image that
#   was built and scanned. Whoever serves it decides what runs.
# custom:
#   id: MST-W024
#   severity: HIGH
#   category: Workload
#   recommended_action: >-
#     Put the script into the image, or into a ConfigMap, and run it from there.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/application-security-checklist/
package muster.workload.downloaded_script

import rego.v1

import data.lib.kubernetes

pipeline := `(curl|wget)[ \t][^|;&]*[|][ \t]*(sudo[ \t]+)?([a-z/]*/)?(ba|da|k|z|a)?sh([^A-Za-z0-9_.-]|$)`

deny contains result if {
	some container in kubernetes.declared_containers
	some field in ["command", "args"]
	some argument in kubernetes.list(container[field])
	is_string(argument)
	regex.match(pipeline, argument)
	result := kubernetes.about_container(container, "runs a script that it downloads at start")
}
