# Gives policies one view of an object, whatever its kind: its name, the pod it makes, the
# containers and volumes of that pod. Policies that were written for Trivy find the names they
# use here too. Every rule points into the input; only `containers`, which such policies read, is
# made up, and only where one of them asks.
package lib.kubernetes

import rego.v1

# The object itself. Gatekeeper wraps it into a review, which is no object of its own; a field of
# that name in an object wraps nothing.

default is_gatekeeper := false

is_gatekeeper if {
	is_object(input.review.object)
	not input.apiVersion
}

object := input.review.object if is_gatekeeper

object := input if not is_gatekeeper

default kind := ""

kind := object.kind

default api_version := ""

api_version := object.apiVersion

name := object.metadata.name if is_string(object.metadata.name)

else := object.metadata.generateName if is_string(object.metadata.generateName)

else := ""

default namespace := "default"

namespace := object.metadata.namespace

# Kinds.

is_pod if kind == "Pod"

is_deployment if kind == "Deployment"

is_statefulset if kind == "StatefulSet"

is_daemonset if kind == "DaemonSet"

is_replicaset if kind == "ReplicaSet"

is_replicationcontroller if kind == "ReplicationController"

is_job if kind == "Job"

is_cronjob if kind == "CronJob"

is_service if kind == "Service"

is_namespace if kind == "Namespace"

is_configmap if kind == "ConfigMap"

is_role_binding_kind if kind in {"RoleBinding", "ClusterRoleBinding"}

default is_controller := false

is_controller if kind in {
	"DaemonSet",
	"Deployment",
	"DeploymentConfig",
	"Job",
	"ReplicaSet",
	"ReplicationController",
	"StatefulSet",
}

# The pod that the object is or makes.

pod := object if is_pod

pod := object.spec.template if is_controller

pod := object.spec.jobTemplate.spec.template if is_cronjob

pods contains pod

pod_spec := pod.spec

annotations contains pod.metadata.annotations

# Pods that a kubelet reads from files appear as mirrors, which nobody can change here.
default is_mirror := false

is_mirror if is_string(pod.metadata.annotations["kubernetes.io/config.mirror"])

default is_windows := false

is_windows if pod_spec.os.name == "windows"

default uses_user_namespace := false

uses_user_namespace if pod_spec.hostUsers == false

host_ipcs contains pod_spec.hostIPC

host_networks contains pod_spec.hostNetwork

host_pids contains pod_spec.hostPID

host_aliases contains pod_spec if has_field(pod_spec, "hostAliases")

volumes contains volume if {
	some volume in list(pod_spec.volumes)
	is_object(volume)
}

# A path of the host that a volume shows, without superfluous slashes; "/" becomes empty.
host_path(volume) := path if {
	is_string(volume.hostPath.path)
	volume.hostPath.path != ""
	path := trim_suffix(regex.replace(volume.hostPath.path, `/+`, "/"), "/")
}

covers_path(directory, path) if directory == path

covers_path(directory, path) if startswith(path, sprintf("%s/", [directory]))

# Containers. Ephemeral ones are added to a running pod by hand, the others are declared.

all_containers contains container if {
	some field in ["containers", "initContainers", "ephemeralContainers"]
	some container in container_list(pod_spec, field)
}

declared_containers contains container if {
	some field in ["containers", "initContainers"]
	some container in container_list(pod_spec, field)
}

main_containers contains container if {
	some container in container_list(pod_spec, "containers")
}

# The containers with the security settings that they inherit from their pod, as Trivy shows them.
containers contains container if {
	not has_pod_settings
	some container in all_containers
}

containers contains {field: value |
	some field in (fields_of(container) | {"securityContext"})
	value := inheriting_field(container, field)
} if {
	has_pod_settings
	some container in all_containers
}

has_pod_settings if count(fields_of(pod_spec.securityContext) & inherited_settings) > 0

inherited_settings := {
	"appArmorProfile",
	"runAsGroup",
	"runAsNonRoot",
	"runAsUser",
	"seLinuxOptions",
	"seccompProfile",
	"windowsOptions",
}

inheriting_field(container, field) := container[field] if field != "securityContext"

inheriting_field(container, "securityContext") := {setting: value |
	some setting in (own_settings(container) | inherited_settings)
	value := security_setting(container, setting)
}

own_settings(container) := {setting | some setting in fields_of(container.securityContext)}

fields_of(value) := {field | some field, _ in value} if is_object(value)

# An object makes one pod, so its containers are all there are.
pod_containers(_) := [container | some container in containers]

container_list(spec, field) := [container |
	some container in list(spec[field])
	is_object(container)
]

name_of(value) := value.name if is_string(value.name)

else := "(unnamed)"

added_capability(container, capability) if {
	some added in list(container.securityContext.capabilities.add)
	added == capability
}

dropped_capability(container, capability) if {
	some dropped in list(container.securityContext.capabilities.drop)
	dropped == capability
}

# A setting as the container gets it: its own, or else the one of its pod.
security_setting(container, field) := value if {
	value := container.securityContext[field]
	value != null
}

else := value if {
	value := pod_spec.securityContext[field]
	value != null
}

# A request or limit of the container, or of its pod for all containers.
sets_resource(container, amount, resource) if container.resources[amount][resource] != null

sets_resource(_, amount, resource) if pod_spec.resources[amount][resource] != null

no_read_only_filesystem(container) if not has_read_only_filesystem(container)

has_read_only_filesystem(container) if container.securityContext.readOnlyRootFilesystem == true

privilege_escalation_allowed(container) if not forbids_privilege_escalation(container)

forbids_privilege_escalation(container) if {
	container.securityContext.allowPrivilegeEscalation == false
}

# Images. A registry may have a port, so a tag is looked for behind the last slash only.

image_tag(image) := tag if {
	parts := split(image_file(image), ":")
	count(parts) > 1
	tag := parts[1]
}

image_has_digest(image) if regex.match(`@[a-z0-9]+:[a-f0-9]{32,}$`, image)

image_file(image) := file if {
	segments := split(split(image, "@")[0], "/")
	file := segments[count(segments) - 1]
}

split_image(image) := [trim_suffix(split(image, "@")[0], sprintf(":%s", [tag])), tag] if {
	tag := image_tag(image)
}

else := [split(image, "@")[0], "latest"]

# Commands of the control plane.

command_has_flag(command, flag) if {
	some argument in list(command)
	regex.match(flag, argument)
}

is_apiserver(container) if runs_program(container, "kube-apiserver")

is_controllermanager(container) if runs_program(container, "kube-controller-manager")

is_scheduler(container) if runs_program(container, "kube-scheduler")

is_etcd(container) if runs_program(container, "etcd")

runs_program(container, program) if {
	segments := split(container.command[0], "/")
	segments[count(segments) - 1] == program
}

# What a policy says.

subject := sprintf("%s \"%s\"", [kind, name])

about(fact) := {"msg": sprintf("%s %s", [subject, fact])}

about_container(container, fact) := {
	"msg": sprintf("Container \"%s\" of %s %s", [name_of(container), subject, fact]),
	"scope": {"type": "Container", "value": name_of(container)},
}

about_path(path, fact) := {
	"msg": sprintf("%s %s", [subject, fact]),
	"scope": {"type": "JSONPath", "value": path},
}

about_key(key, fact) := {
	"msg": sprintf("Key \"%s\" of %s %s", [key, subject, fact]),
	"scope": {"type": "ConfigMapKey", "value": key},
}

format(message) := {"msg": message} if is_gatekeeper

format(message) := message if not is_gatekeeper

# Small helpers.

list(value) := value if is_array(value)

else := []

has_field(value, field) if value[field]
