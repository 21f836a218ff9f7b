# METADATA
# title: API service not verified
# description: >-
#   The API server passes requests on without looking at the certificate of the other side.
#   Whoever stands between them can answer in its place and sees who asks for what.
# custom:
#   id: MST-C008
#   severity: MEDIUM
#   category: Configuration
#   recommended_action: >-
#     Remove `spec.insecureSkipTLSVerify` and put the certificate authority into `spec.caBundle`.
#   kinds: APIService
#   url: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
package muster.configuration.unverified_api_service

import rego.v1

import data.lib.kubernetes

deny contains result if {
	kubernetes.object.spec.insecureSkipTLSVerify == true
	result := kubernetes.about("is called without looking at its certificate")
}
