# Policies written for Trivy ask here for the version of the cluster. Nobody tells it: a policy that asks
# finds it undefined.
package k8s
