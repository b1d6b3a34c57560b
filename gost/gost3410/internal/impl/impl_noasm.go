// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package impl

// There is no assembly in this build.
const (
	MULX = false // see impl_amd64.go
	IFMA = false
)

// Each calls f once, for the only implementation.
func Each(f func(name string)) { f("portable") }
