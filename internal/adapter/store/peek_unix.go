// SPDX-License-Identifier: Apache-2.0

//go:build unix

package store

import (
	"errors"
	"syscall"
)

// readable reports whether a socket has bytes to read, has ended or has failed.
func readable(raw syscall.RawConn) bool {
	var peeked error
	// Not raw.Read: the driver may have left a reader waiting, and that would wait for it.
	err := raw.Control(func(fd uintptr) {
		_, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err != nil || !errors.Is(peeked, syscall.EAGAIN)
}
