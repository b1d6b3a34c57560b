// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package store

import "syscall"

// readable would report whether a socket has bytes to read. Windows cannot look without waiting, so an
// ended connection is noticed by the statement that uses it.
func readable(syscall.RawConn) bool { return false }
