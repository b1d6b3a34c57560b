//go:build !linux

package blob

import "os"

// openDirect returns nil: there are no writes past the page cache here.
func openDirect(string) *os.File { return nil }

func preferHuge([]byte) {}
