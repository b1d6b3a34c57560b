package rest

import (
	"net"
	"sync"
)

const (
	// bulkSize is read at a time from a connection that brings much.
	bulkSize = 1 << 20
	// directSize is from which room on a read goes past that: it is large enough itself.
	directSize = wideSize
	// bulkAfter reads in a row that filled all the room they had make a connection one
	// that brings much.
	bulkAfter = 16
)

var bulks = sync.Pool{New: func() any { b := make([]byte, bulkSize); return &b }}

// Bulk returns a listener whose connections are read in large pieces while they bring
// much. The server of net/http asks for 4 KiB to find out where the next chunk of a
// body in chunks ends, so that a document of a gigabyte takes a hundred thousand
// system calls without this.
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
	filled int     // reads in a row that left no room
	ahead  *[]byte // nil while little comes
	rest   []byte  // of ahead, unread
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
	// What comes in less than the room of one ordinary read is not much any more.
	c.count(n, len(p))
	k := copy(p, (*c.ahead)[:n])
	c.rest = (*c.ahead)[k:n]
	return k, err
}

// count notes that a read brought n octets where there was room for so many.
func (c *bulkConn) count(n, room int) {
	if n < room {
		c.filled = 0
		return
	}
	c.filled++
}

// leave gives the room for large pieces back: nothing is in it.
func (c *bulkConn) leave() {
	if c.ahead != nil {
		bulks.Put(c.ahead)
		c.ahead, c.rest = nil, nil
	}
}
