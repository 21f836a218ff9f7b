# METADATA
# title: Namespace without a Pod Security Standard
# description: >-
#   Where no standard is enforced, whoever can create a pod can create a privileged one, unless
#   another admission controller forbids it.
# custom:
#   id: MST-C005
#   severity: LOW
#   category: Configuration
#   recommended_action: >-
#     Label the namespace with `pod-security.kubernetes.io/enforce` and `baseline` or
#     `restricted`.
#   kinds: Namespace
#   url: https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces
package muster.configuration.namespace_without_standard

import rego.v1

import data.lib.kubernetes

deny contains result if {
	not is_system
	not has_standard
	result := kubernetes.about("does not say which Pod Security Standard it enforces")
}

has_standard if {
	level := kubernetes.object.metadata.labels["pod-security.kubernetes.io/enforce"]
	level in {"privileged", "baseline", "restricted"}
}

# Namespaces of the cluster itself, whose pods need the node.
is_system if kubernetes.name in {"kube-system", "kube-public", "kube-node-lease"}
