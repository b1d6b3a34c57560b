package blob

import (
	"os"
	"syscall"
)

// openDirect opens a file for writes past the page cache, or returns nil where the
// file system has none.
func openDirect(name string) *os.File {
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// preferHuge asks for huge pages, which begin at multiples of hugePage; a system that
// has none does without.
func preferHuge(p []byte) { _ = syscall.Madvise(p, syscall.MADV_HUGEPAGE) }
