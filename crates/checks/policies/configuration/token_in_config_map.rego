# METADATA
# title: Token in a ConfigMap
# description: >-
#   The value has the form of a token or key of a well-known service. ConfigMaps are read by many
#   and encrypted by few.
# custom:
#   id: MST-C002
#   severity: HIGH
#   category: Configuration
#   recommended_action: >-
#     Move the value into a Secret, then replace it by a new one: it has been seen.
#   kinds: ConfigMap
#   url: https://kubernetes.io/docs/concepts/security/secrets-good-practices/
package muster.configuration.token_in_config_map

import rego.v1

import data.lib.kubernetes

forms := {
	"an AWS access key": `(^|[^A-Za-z0-9])(AKIA|ASIA)[A-Z0-9]{16}([^A-Za-z0-9]|$)`,
	"a GitHub token": `(^|[^A-Za-z0-9_])(gh[opsru]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})`,
	"a GitLab token": `(^|[^A-Za-z0-9_])glpat-[A-Za-z0-9_-]{20}`,
	"a Google API key": `(^|[^A-Za-z0-9_])AIza[A-Za-z0-9_-]{35}([^A-Za-z0-9_-]|$)`,
	"a JSON web token": `(^|[^A-Za-z0-9_])eyJ[A-Za-z0-9_-]{8,}[.]eyJ[A-Za-z0-9_-]{8,}[.][A-Za-z0-9_-]{8,}`,
	"a Slack token": `(^|[^A-Za-z0-9_])xox[abeprs]-[A-Za-z0-9-]{10}`,
	"a Stripe key": `(^|[^A-Za-z0-9_])[rs]k_live_[A-Za-z0-9]{16}`,
	"a URL with a password": `[a-z][a-z0-9+]+://[A-Za-z0-9._%~-]+:[A-Za-z0-9._%~!*+,;=-]+@[A-Za-z0-9]`,
}

deny contains result if {
	is_object(kubernetes.object.data)
	some key, value in kubernetes.object.data
	is_string(value)
	some title, form in forms
	regex.match(form, value)
	result := kubernetes.about_key(key, sprintf("holds %s", [title]))
}
