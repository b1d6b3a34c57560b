// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"os"
	"syscall"
)

// openDirect opens a file for writes past the page cache, or returns nil if the file system does not
// support them.
func openDirect(name string) *os.File {
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// preferHuge asks for huge pages, which begin at multiples of hugePage. A system without them ignores
// it.
func preferHuge(p []byte) { _ = syscall.Madvise(p, syscall.MADV_HUGEPAGE) }
