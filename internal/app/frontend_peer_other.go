// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package app

import (
	"errors"
	"net"
)

// peerUID fails: only on Linux is it known how to find the user at the other end of a Unix socket.
func peerUID(*net.UnixConn) (int, error) {
	return 0, errors.New("gost_tls: the user at the other end of a Unix socket is known on Linux only; run the service with GOST-TLS on Linux")
}
