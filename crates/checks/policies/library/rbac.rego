# Reads roles and bindings the way the authorizer does: `*` stands for everything and
# `*/subresource` for that subresource of everything; no other pattern exists.
package lib.rbac

import rego.v1

import data.lib.kubernetes

# Roles and bindings that Kubernetes ships and restores at each start. The label alone would let
# anybody hide a role, so the name has to be one of theirs too.
default is_shipped := false

is_shipped if {
	kubernetes.object.metadata.labels["kubernetes.io/bootstrapping"] == "rbac-defaults"
	shipped_name(kubernetes.name)
}

shipped_name(name) if startswith(name, "system:")

shipped_name(name) if {
	name in {"cluster-admin", "admin", "edit", "view", "extension-apiserver-authentication-reader"}
}

# The rules to judge, by their place.
rules[index] := rule if {
	not is_shipped
	some index, rule in kubernetes.list(kubernetes.object.rules)
	is_object(rule)
}

subjects[index] := subject if {
	not is_shipped
	some index, subject in kubernetes.list(kubernetes.object.subjects)
	is_object(subject)
}

# The verbs of a rule that count for a question.
granted_verbs(rule, group, resources, verbs) := granted if {
	has_group(rule, group)
	has_any_resource(rule, resources)
	granted := {verb | some verb in kubernetes.list(rule.verbs); verb in (verbs | {"*"})}
	count(granted) > 0
}

# A rule that names the objects it is for does not open all of them.
names_objects(rule) if count(kubernetes.list(rule.resourceNames)) > 0

has_group(rule, group) if {
	some entry in kubernetes.list(rule.apiGroups)
	entry in {group, "*"}
}

has_any_resource(rule, resources) if {
	some resource in resources
	has_resource(rule, resource)
}

has_resource(rule, resource) if {
	some entry in kubernetes.list(rule.resources)
	covers_resource(entry, resource)
}

covers_resource(entry, resource) if entry in {"*", resource}

covers_resource(entry, resource) if {
	parts := split(resource, "/")
	entry == sprintf("*/%s", [parts[1]])
}

# What a policy says of one rule or subject.
about_rule(index, fact) := kubernetes.about_path(sprintf("$.rules[%d]", [index]), fact)

about_subject(index, fact) := kubernetes.about_path(sprintf("$.subjects[%d]", [index]), fact)

verbs_text(verbs) := concat(", ", sort(verbs))
