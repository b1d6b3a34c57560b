// SPDX-License-Identifier: Apache-2.0

//go:build unix

package blob

import (
	"errors"
	"os"
)

// createUnlinked makes a file of a directory, and removes its name while the file is open. If wanted, the
// file is opened a second time for writes past the page cache; direct may be nil.
func createUnlinked(dir string, wanted bool) (plain, direct *os.File, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, nil, err
	}
	if wanted {
		direct = openDirect(f.Name())
	}
	// Another process that starts with the same directory may have removed it already.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Close()
		if direct != nil {
			direct.Close()
		}
		return nil, nil, err
	}
	return f, direct, nil
}

// inUse reports whether a file was not removed because a process has it open: never here.
func inUse(error) bool { return false }
