// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"syscall"
)

// peerUID returns the user at the other end of a Unix socket, as the kernel reports it.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *syscall.Ucred
	var failure error
	if err := raw.Control(func(fd uintptr) {
		credentials, failure = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failure != nil {
		return 0, failure
	}
	return int(credentials.Uid), nil
}
