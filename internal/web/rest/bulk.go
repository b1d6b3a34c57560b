// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net"
	"sync"
)

const (
	// bulkSize is the number of bytes read at a time from a busy connection.
	bulkSize = 1 << 20
	// directSize is the buffer size from which a read bypasses the large buffer.
	directSize = wideSize
	// bulkAfter is how many reads in a row must fill their buffers until a connection
	// counts as busy.
	bulkAfter = 16
)

var bulks = sync.Pool{New: func() any { b := make([]byte, bulkSize); return &b }}

// Bulk returns a listener whose connections are read in large pieces while they bring much
// data. The server of net/http reads 4 KiB to find the next chunk of a chunked body, so
// without Bulk a gigabyte takes a hundred thousand system calls.
func Bulk(l net.Listener) net.Listener { return bulkListener{l} }

type bulkListener struct{ net.Listener }

func (l bulkListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &bulkConn{passing: passing{c}}, nil
}

// bulkConn is read by one goroutine at a time, as net/http does.
type bulkConn struct {
	passing
	filled int     // reads in a row that filled their buffers
	ahead  *[]byte // large buffer; nil: the connection is not busy
	rest   []byte  // unread part of ahead
}

// Read implements net.Conn.
func (c *bulkConn) Read(p []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	if c.filled < bulkAfter || len(p) >= directSize {
		c.leave()
		n, err := c.Conn.Read(p)
		c.count(n, len(p))
		return n, err
	}
	if c.ahead == nil {
		c.ahead = bulks.Get().(*[]byte)
	}
	n, err := c.Conn.Read(*c.ahead)
	// A read that does not fill an ordinary buffer ends the busy time.
	c.count(n, len(p))
	k := copy(p, (*c.ahead)[:n])
	c.rest = (*c.ahead)[k:n]
	return k, err
}

// count notes that a read brought n bytes into a buffer of size room.
func (c *bulkConn) count(n, room int) {
	if n < room {
		c.filled = 0
		return
	}
	c.filled++
}

// leave gives the large buffer back. It must be empty.
func (c *bulkConn) leave() {
	if c.ahead != nil {
		bulks.Put(c.ahead)
		c.ahead, c.rest = nil, nil
	}
}
