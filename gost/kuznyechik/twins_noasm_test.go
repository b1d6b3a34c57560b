// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package kuznyechik

import "testing"

// eachTwin runs f with the only implementation of this build.
func eachTwin(t *testing.T, f func(t *testing.T)) { t.Run("portable", f) }
