// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"syscall"
)

// ownerOf returns the numbers of the user and the group that own a file.
func ownerOf(info os.FileInfo) (uid, gid int, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}

// readOnly reports whether a file is on a read-only file system.
func readOnly(file string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(file, &s) == nil && s.Flags&syscall.MS_RDONLY != 0
}
