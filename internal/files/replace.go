// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file beside the one it is to become, so that a reader
// sees the old one or the new one, whole.
func Replace(file string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Create writes a file unless it exists. It reports whether it made the file. A file that it cannot
// complete is removed.
func Create(file string, data []byte, mode os.FileMode) (made bool, err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		os.Remove(file)
		return false, err
	}
	return true, nil
}
