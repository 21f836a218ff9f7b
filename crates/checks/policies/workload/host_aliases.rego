# METADATA
# title: Host aliases
# description: >-
#   Host aliases write into /etc/hosts of the pod and so lead its traffic past DNS. They are
#   easily forgotten and can send it to the wrong place.
# custom:
#   id: MST-W012
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Remove `hostAliases` from the pod and let DNS or a Service answer for the name.
#   kinds: Workload
#   url: https://kubernetes.io/docs/tasks/network/customize-hosts-file-for-pods/
package muster.workload.host_aliases

import rego.v1

import data.lib.kubernetes

deny contains result if {
	count(kubernetes.list(kubernetes.pod_spec.hostAliases)) > 0
	result := kubernetes.about("writes host aliases into its pod")
}
