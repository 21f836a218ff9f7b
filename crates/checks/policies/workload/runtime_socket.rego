# METADATA
# title: Socket of the container runtime mounted
# description: >-
#   Whoever can speak to the socket of the container runtime can start a privileged container and
#   so owns the node. Mounting a directory above the socket is the same.
# custom:
#   id: MST-W013
#   severity: CRITICAL
#   category: Workload
#   recommended_action: >-
#     Remove the `hostPath` volume. Build images with a tool that needs no runtime socket.
#   kinds: Workload
#   url: https://kubernetes.io/docs/concepts/storage/volumes/#hostpath
package muster.workload.runtime_socket

import rego.v1

import data.lib.kubernetes

sockets := {socket |
	some directory in ["/run", "/var/run"]
	some file in [
		"docker.sock",
		"containerd/containerd.sock",
		"crio/crio.sock",
		"cri-dockerd.sock",
		"dockershim.sock",
		"k3s/containerd/containerd.sock",
		"podman/podman.sock",
	]
	socket := concat("/", [directory, file])
}

pipes := {`\\.\pipe\docker_engine`, `\\.\pipe\containerd-containerd`}

deny contains result if {
	some volume in kubernetes.volumes
	exposes_runtime(kubernetes.host_path(volume))
	result := kubernetes.about(sprintf(
		"mounts the socket of the container runtime by volume \"%s\" (%s)",
		[kubernetes.name_of(volume), volume.hostPath.path],
	))
}

exposes_runtime(path) if {
	some socket in sockets
	kubernetes.covers_path(path, socket)
}

exposes_runtime(path) if path in pipes
