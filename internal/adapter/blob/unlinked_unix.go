// SPDX-License-Identifier: Apache-2.0

//go:build unix

package blob

import (
	"errors"
	"os"
)

// createUnlinked makes a file of a directory, and removes its name while the file is open.
func createUnlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	// Another process that starts with the same directory may have removed it already.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// inUse reports whether a file was not removed because a process has it open: never here.
func inUse(error) bool { return false }
