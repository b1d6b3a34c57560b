//go:build !linux

package app

import (
	"errors"
	"net"
)

// peerUID is what the GOST-TLS door rests on, and only Linux is known to tell it.
func peerUID(*net.UnixConn) (int, error) {
	return 0, errors.New("gost_tls: this system does not tell who connects to a Unix socket: run the GOST-TLS door on Linux")
}
