//go:build tools

// Package peers pins a program that ours is held against.
package peers

import _ "github.com/open-policy-agent/opa"
