// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file beside the one it is to become, so that a reader
// sees the old one or the new one, whole, also after a loss of power.
func Replace(file string, data []byte, mode os.FileMode) error {
	return replace(file, data, mode, nil)
}

// Rewrite is Replace for a file that exists. It keeps its mode and its owner.
func Rewrite(file string, data []byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return replace(file, data, info.Mode().Perm(), info)
}

// replace is Replace. The new file gets the owner of another one if that is not nil.
func replace(file string, data []byte, mode os.FileMode, like os.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if like != nil && err == nil {
		if uid, gid, known := ownerOf(like); known {
			err = f.Chown(uid, gid)
		}
	}
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return SyncDir(filepath.Dir(file))
}

// Create writes a file unless it exists. It reports whether it made the file. A file that it cannot
// complete is removed. A file that it made outlives a loss of power.
func Create(file string, data []byte, mode os.FileMode) (made bool, err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = SyncDir(filepath.Dir(file))
	}
	if err != nil {
		os.Remove(file)
		return false, err
	}
	return true, nil
}
