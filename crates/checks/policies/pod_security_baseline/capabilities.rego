# METADATA
# title: Capabilities beyond the default set
# description: >-
#   Capabilities beyond the ones that container runtimes grant open parts of the kernel that are
#   shared with the node. Some, such as SYS_ADMIN, are as good as root there.
# custom:
#   id: MST-B004
#   severity: HIGH
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Take the capability out of `securityContext.capabilities.add` of the container.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.capabilities

import rego.v1

import data.lib.kubernetes

allowed := {
	"AUDIT_WRITE",
	"CHOWN",
	"DAC_OVERRIDE",
	"FOWNER",
	"FSETID",
	"KILL",
	"MKNOD",
	"NET_BIND_SERVICE",
	"SETFCAP",
	"SETGID",
	"SETPCAP",
	"SETUID",
	"SYS_CHROOT",
}

deny contains result if {
	some container in kubernetes.all_containers
	some capability in kubernetes.list(container.securityContext.capabilities.add)
	not capability in allowed
	result := kubernetes.about_container(container, sprintf("adds the capability %v", [capability]))
}
