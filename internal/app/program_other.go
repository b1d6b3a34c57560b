// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package app

// releaseProgram does nothing: only Linux is known to keep pages that were used once.
func releaseProgram() {}
