//go:build tools

// Package tools names the command that the test kit builds, so that `go mod tidy`
// keeps what it needs.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
