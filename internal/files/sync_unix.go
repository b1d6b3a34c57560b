// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"os"
)

// SyncDir makes the names in a directory durable: a file that was created or renamed in it keeps
// its name after a loss of power.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
