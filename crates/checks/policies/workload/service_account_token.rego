# METADATA
# title: Token of the default service account mounted
# description: >-
#   A pod that does not ask for a service account hardly needs the Kubernetes API, yet gets a
#   token for it. Whoever takes over the pod has the token, and everything ever granted to the
#   default account.
# custom:
#   id: MST-W010
#   severity: MEDIUM
#   category: Workload
#   recommended_action: >-
#     Set `automountServiceAccountToken` of the pod to `false`, or give it a service account of
#     its own in `serviceAccountName`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#opt-out-of-api-credential-automounting
package muster.workload.service_account_token

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.pod_spec)
	not kubernetes.is_mirror
	not has_own_account
	not refuses_token
	result := kubernetes.about("mounts a token of the default service account")
}

has_own_account if {
	some field in ["serviceAccountName", "serviceAccount"]
	account := kubernetes.pod_spec[field]
	not account in {"", "default", null}
}

refuses_token if kubernetes.pod_spec.automountServiceAccountToken == false
