//go:build !amd64 || purego

package streebog

import "testing"

// eachTwin runs f through every implementation, here the only one.
func eachTwin(t *testing.T, f func(t *testing.T)) { t.Run("portable", f) }
