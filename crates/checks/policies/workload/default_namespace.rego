# METADATA
# title: Default namespace used
# description: >-
#   Everything without a place of its own ends up in the namespace `default`, where quotas,
#   network policies and access rules can hardly be told apart by application.
# custom:
#   id: MST-W011
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Give the workload a namespace of its own in `metadata.namespace`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces/
package muster.workload.default_namespace

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.object.metadata.namespace == "default"
	result := kubernetes.about("is in the default namespace")
}
