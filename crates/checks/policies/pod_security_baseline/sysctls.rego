# METADATA
# title: Unsafe sysctls
# description: >-
#   Sysctls outside the safe set reach beyond their pod: they can weaken the node or starve its
#   neighbours.
# custom:
#   id: MST-B012
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove the entry from `securityContext.sysctls` of the pod, or set it on the node for all.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.sysctls

import rego.v1

import data.lib.kubernetes

# The last two were declared safe in Kubernetes 1.37, the two before them in 1.32.
allowed := {
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.ping_group_range",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
	"net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_notsent_lowat",
}

deny contains result if {
	some sysctl in kubernetes.list(kubernetes.pod_spec.securityContext.sysctls)
	name := sysctl.name
	not name in allowed
	result := kubernetes.about(sprintf("sets the unsafe sysctl %v", [name]))
}
