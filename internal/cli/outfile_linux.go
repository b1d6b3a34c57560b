// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// createUnnamed creates a file without a name in a directory, which the system removes if the process ends, however it
// ends. nil: the file system or the system cannot do that.
func createUnnamed(dir string, mode fs.FileMode) *os.File {
	fd, err := unix.Open(dir, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(mode))
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "")
	if _, err := os.Stat(descriptor(f)); err != nil { // without /proc it gets no name later
		f.Close()
		return nil
	}
	return f
}

// name gives a file of createUnnamed a name, if no file has it.
func name(f *os.File, name string) error {
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &fs.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}

// giveOwner gives a file the owner and the group of another one, if the process may do that.
func giveOwner(f *os.File, of fs.FileInfo) {
	if s, is := of.Sys().(*syscall.Stat_t); is {
		_ = f.Chown(int(s.Uid), int(s.Gid))
	}
}

func descriptor(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
