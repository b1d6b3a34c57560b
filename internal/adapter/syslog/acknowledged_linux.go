// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"net"

	"golang.org/x/sys/unix"
)

// unacknowledged returns how many bytes the system of the receiver has not acknowledged.
func unacknowledged(conn *net.TCPConn) (n int) {
	raw, err := conn.SyscallConn()
	if err == nil {
		var asking error
		err = raw.Control(func(fd uintptr) { n, asking = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		if err == nil {
			err = asking
		}
	}
	if err != nil {
		return 0 // the end of the connection is all that is known
	}
	return n
}
