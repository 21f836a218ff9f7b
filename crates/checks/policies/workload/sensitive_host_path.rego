# METADATA
# title: Sensitive directory of the host mounted
# description: >-
#   Some directories of a node hold the keys of the cluster or decide what the node runs. A pod
#   that sees them can take over the node, and one that only reads them can often take over the
#   cluster.
# custom:
#   id: MST-W023
#   severity: HIGH
#   category: Workload
#   recommended_action: >-
#     Remove the `hostPath` volume, or mount just the one file or directory below that is needed,
#     read-only.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/storage/volumes/#hostpath
package muster.workload.sensitive_host_path

import rego.v1

import data.lib.kubernetes

directories := [
	"/boot",
	"/dev",
	"/etc",
	"/proc",
	"/root",
	"/sys",
	"/usr",
	"/var/lib/containerd",
	"/var/lib/docker",
	"/var/lib/etcd",
	"/var/lib/kubelet",
	"/var/lib/rancher",
]

# Keys and manifests, where a file alone is too much.
secret_directories := ["/etc/kubernetes", "/etc/ssh", "/root/.ssh", "/var/lib/etcd", "/var/lib/kubelet/pki"]

deny contains result if {
	some volume in kubernetes.volumes
	is_sensitive(kubernetes.host_path(volume))
	result := kubernetes.about(sprintf(
		"mounts the sensitive directory %s of its host as volume \"%s\"",
		[volume.hostPath.path, kubernetes.name_of(volume)],
	))
}

is_sensitive(path) if {
	some directory in directories
	kubernetes.covers_path(path, directory)
}

is_sensitive(path) if {
	some directory in secret_directories
	kubernetes.covers_path(directory, path)
}
