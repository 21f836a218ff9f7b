# METADATA
# title: SELinux options of its own
# description: >-
#   SELinux keeps containers away from the files of the node and of each other. A type, user or
#   role of its own can take a container out of that order.
# custom:
#   id: MST-B009
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `user` and `role` from `seLinuxOptions`, and `type` unless it is one of
#     `container_t`, `container_init_t`, `container_kvm_t` and `container_engine_t`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.selinux

import rego.v1

import data.lib.kubernetes

allowed_types := {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", null}

deny contains result if {
	some fact in facts(kubernetes.pod_spec.securityContext.seLinuxOptions)
	result := kubernetes.about(sprintf("sets %s for its pod", [fact]))
}

deny contains result if {
	some container in kubernetes.all_containers
	some fact in facts(container.securityContext.seLinuxOptions)
	result := kubernetes.about_container(container, sprintf("sets %s", [fact]))
}

facts(options) := type_facts(options) | identity_facts(options)

type_facts(options) := {sprintf("the SELinux type %v", [type]) |
	type := options.type
	not type in allowed_types
}

identity_facts(options) := {sprintf("the SELinux %s %v", [field, value]) |
	some field in ["user", "role"]
	value := options[field]
	not value in {"", null}
}
