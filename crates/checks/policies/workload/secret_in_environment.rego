# METADATA
# title: Secret written into an environment variable
# description: >-
#   A password in a manifest is read by everybody who may read the workload, and stays in Git, in
#   backups and in reports.
# custom:
#   id: MST-W014
#   severity: HIGH
#   category: Workload
#   recommended_action: >-
#     Put the value into a Secret and refer to it with `valueFrom.secretKeyRef`, or mount the
#     Secret as a file. Then change the password.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/security/secrets-good-practices/
package muster.workload.secret_in_environment

import rego.v1

import data.lib.kubernetes

words := `PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?`

keys := `(API|ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION)[_.-]?KEY`

names := sprintf("(%s|%s)[0-9]*$", [words, keys])

# Values that tell where the secret is, or whether there is one, but not the secret itself.
harmless := `^([$][(][^)]*[)]|[$][{][^}]*[}]|(/[A-Za-z0-9._-]+)+|[Tt]rue|[Ff]alse)$`

deny contains result if {
	some container in kubernetes.all_containers
	some variable in kubernetes.list(container.env)
	is_string(variable.name)
	regex.match(names, upper(variable.name))
	is_string(variable.value)
	variable.value != ""
	not regex.match(harmless, variable.value)
	result := kubernetes.about_container(
		container,
		sprintf("has a secret as plain text in the environment variable %s", [variable.name]),
	)
}
