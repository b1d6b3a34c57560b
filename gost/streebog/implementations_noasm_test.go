// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package streebog

import "testing"

// eachImplementation runs f with the only implementation of this build.
func eachImplementation(t *testing.T, f func(t *testing.T)) { t.Run("portable", f) }
