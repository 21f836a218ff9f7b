# METADATA
# title: Namespace that allows privileged pods
# description: >-
#   The standard `privileged` forbids nothing. Whoever can create a pod in this namespace can
#   take over a node.
# custom:
#   id: MST-C006
#   severity: MEDIUM
#   category: Configuration
#   recommended_action: >-
#     Label the namespace with `pod-security.kubernetes.io/enforce` and `baseline` or
#     `restricted`, and move what needs more to a namespace of its own.
#   kinds: Namespace
#   url: https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces
package muster.configuration.namespace_privileged

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not is_system
	kubernetes.object.metadata.labels["pod-security.kubernetes.io/enforce"] == "privileged"
	result := kubernetes.about("allows privileged pods")
}

# Namespaces of the cluster itself, whose pods need the node.
is_system if kubernetes.name in {"kube-system", "kube-public", "kube-node-lease"}
