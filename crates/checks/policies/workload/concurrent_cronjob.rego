# METADATA
# title: CronJob may run twice at a time
# description: >-
#   Where a run takes longer than the time between two, runs pile up until the node or the
#   service they call gives in.
# custom:
#   id: MST-W021
#   severity: LOW
#   category: Workload
#   recommended_action: >-
#     Set `spec.concurrencyPolicy` of the CronJob to `Forbid` or `Replace`.
#   kinds: CronJob
#   url: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#concurrency-policy
package muster.workload.concurrent_cronjob

import rego.v1

import data.lib.kubernetes

deny contains result if {
	is_object(kubernetes.object.spec)
	not is_exclusive
	result := kubernetes.about("may start a run while another one is still going")
}

is_exclusive if kubernetes.object.spec.concurrencyPolicy in {"Forbid", "Replace"}
