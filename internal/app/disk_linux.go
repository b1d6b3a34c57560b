// SPDX-License-Identifier: Apache-2.0

//go:build linux

package app

import "golang.org/x/sys/unix"

// FreeSpace returns the free bytes of the disk of a directory, for users other than root.
func FreeSpace(dir string) (free int64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
