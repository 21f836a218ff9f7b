# Helpers for policies that were written for Trivy.
package lib.utils

import rego.v1

# True where the value has the key, whatever stands there.
has_key(value, key) if {
	found := value[key]
	found == found
}
