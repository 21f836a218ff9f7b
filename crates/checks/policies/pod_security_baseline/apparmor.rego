# METADATA
# title: AppArmor profile switched off
# description: >-
#   The profile that the runtime applies keeps a container from files and mounts it never needs.
#   A pod that switches it off loses this guard.
# custom:
#   id: MST-B008
#   severity: MEDIUM
#   category: Pod Security Standards (Baseline)
#   recommended_action: >-
#     Remove `appArmorProfile` from the security context (and the old
#     `container.apparmor.security.beta.kubernetes.io` annotations), or use `RuntimeDefault` or
#     `Localhost`.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
package muster.pod_security_baseline.apparmor

import rego.v1

import data.lib.kubernetes

prefix := "container.apparmor.security.beta.kubernetes.io/"

allowed_types := {"RuntimeDefault", "Localhost", null}

deny contains result if {
	type := kubernetes.pod_spec.securityContext.appArmorProfile.type
	not type in allowed_types
	result := kubernetes.about(sprintf("sets the AppArmor profile %v for its pod", [type]))
}

deny contains result if {
	some container in kubernetes.all_containers
	type := container.securityContext.appArmorProfile.type
	not type in allowed_types
	result := kubernetes.about_container(container, sprintf("sets the AppArmor profile %v", [type]))
}

deny contains result if {
	is_object(kubernetes.pod.metadata.annotations)
	some key, profile in kubernetes.pod.metadata.annotations
	startswith(key, prefix)
	not allowed_annotation(profile)
	container := trim_prefix(key, prefix)
	result := {
		"msg": sprintf(
			"Container \"%s\" of %s sets the AppArmor profile %v by annotation",
			[container, kubernetes.subject, profile],
		),
		"scope": {"type": "Container", "value": container},
	}
}

allowed_annotation(profile) if profile in {"", "runtime/default", null}

allowed_annotation(profile) if startswith(profile, "localhost/")
