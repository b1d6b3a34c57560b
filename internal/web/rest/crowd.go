// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net"
	"sync"
)

// Crowded returns a listener that has at most a number of connections open. Further ones
// wait in the queue of the system until one of these ends.
func Crowded(l net.Listener, most int) net.Listener {
	return &crowdedListener{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type crowdedListener struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept waits for a free place, then for a connection.
func (l *crowdedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &crowdedConn{passing: passing{c}, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close also ends the wait of Accept.
func (l *crowdedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type crowdedConn struct {
	passing
	leave func()
}

// Close frees the place.
func (c *crowdedConn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
