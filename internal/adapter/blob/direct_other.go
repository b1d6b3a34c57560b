// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package blob

import "os"

// openDirect returns nil: writes past the page cache are not supported here.
func openDirect(string) *os.File { return nil }

func preferHuge([]byte) {}
