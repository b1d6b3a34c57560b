// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"io"
	"net"
	"sync"
	"time"
)

// delay forwards TCP connections and holds back every byte for half of the round trip, in
// both directions: the peer seems to be a round trip away. The order of bytes is kept, and
// the delay bounds no throughput: bytes that were sent together arrive together.
type delay struct {
	listener net.Listener
	half     time.Duration

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// newDelay listens at an address and forwards to another one.
func newDelay(listen, target string, roundTrip time.Duration) (*delay, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	d := &delay{listener: l, half: roundTrip / 2, open: map[net.Conn]bool{}}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(client, target)
		}
	}()
	return d, nil
}

func (d *delay) serve(client net.Conn, target string) {
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		client.Close()
		return
	}
	if !d.keep(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { d.forward(server, client) })
	both.Go(func() { d.forward(client, server) })
	both.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, client)
	delete(d.open, server)
}

// keep remembers connections for close.
func (d *delay) keep(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		if d.closed {
			c.Close()
		} else {
			d.open[c] = true
		}
	}
	return !d.closed
}

// piece is what one read returned, with the time when it is due at the other side.
type piece struct {
	bytes []byte
	due   time.Time
}

// forward copies until one side ends.
func (d *delay) forward(to, from net.Conn) {
	pieces := make(chan piece, 256)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			if n > 0 {
				pieces <- piece{buf[:n], time.Now().Add(d.half)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range pieces { // the reader may wait to deliver
	}
}

func (d *delay) close() {
	d.mu.Lock()
	d.closed = true
	open := d.open
	d.open = nil
	d.mu.Unlock()
	closers := []io.Closer{d.listener}
	for c := range open {
		closers = append(closers, c)
	}
	for _, c := range closers {
		c.Close()
	}
}
