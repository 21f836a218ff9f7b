# METADATA
# title: Default service account hands out its token
# description: >-
#   Every pod that names no service account gets a token of this one, though hardly any of them
#   needs the Kubernetes API.
# custom:
#   id: MST-C007
#   severity: LOW
#   category: Configuration
#   recommended_action: >-
#     Set `automountServiceAccountToken` of the service account `default` to `false`.
#   kinds: ServiceAccount
#   url: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#opt-out-of-api-credential-automounting
package muster.configuration.default_service_account_token

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.name == "default"
	not refuses_token
	result := kubernetes.about("lets its token be mounted into pods")
}

refuses_token if kubernetes.object.automountServiceAccountToken == false
