// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

// KeepMemoryPrivate does nothing: other systems have their own ways.
func KeepMemoryPrivate() error { return nil }
