# METADATA
# title: Password in a ConfigMap
# description: >-
#   The name of a key or of a setting says that its value is a secret. ConfigMaps are read by
#   many and encrypted by few.
# custom:
#   id: MST-C003
#   severity: HIGH
#   category: Configuration
#   recommended_action: >-
#     Move the value into a Secret, then replace it by a new one: it has been seen.
#   kinds: ConfigMap
#   url: https://kubernetes.io/docs/concepts/security/secrets-good-practices/
package muster.configuration.password_in_config_map

import rego.v1

import data.lib.kubernetes

words := `password|passwd|passphrase|secret|token|credentials?`

keys := `(api|access|secret|private|signing|encryption)[_.-]?key`

names := sprintf("(%s|%s)$", [words, keys])

# A line of a file that sets one of them, as YAML, JSON or properties do.
setting := sprintf(
	`(?m)(^|[{,])[ \t]*["']?[a-z0-9_.-]*(%s|%s)["']?[ \t]*[:=][ \t]*("[^"]*"|'[^']*'|[^\r\n,}]*)`,
	[words, keys],
)

# Nothing, a yes or no, a short number, a path, and a place that something else fills in.
harmless := sprintf(
	`^["']?(%s)?["']?[,;]?[ \t]*(#.*)?$`,
	[`true|false|yes|no|null|none|~|[0-9]{1,4}|(/[a-z0-9._-]+)+|[$%<{\[].*|[|>&].*`],
)

deny contains result if {
	some key, value in texts
	regex.match(names, lower(key))
	not contains(value, "\n")
	not regex.match(harmless, lower(value))
	result := kubernetes.about_key(key, "holds a secret, by its name")
}

deny contains result if {
	some key, value in texts
	some found in regex.find_all_string_submatch_n(setting, lower(value), -1)
	not regex.match(harmless, found[count(found) - 1])
	result := kubernetes.about_key(key, "sets a password or another secret")
}

texts[key] := trim_space(value) if {
	is_object(kubernetes.object.data)
	some key, value in kubernetes.object.data
	is_string(value)
}
