// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Crowded returns a listener that has at most a number of connections open. If a further one
// comes, the connection that has been idle for the longest time gives way, of the address that has the most
// connections. Connections with a request under way never do: if there are no others, the
// further one waits until one of them ends. The server must have [ConnState].
func Crowded(l net.Listener, most int) net.Listener {
	return &crowdedListener{
		Listener: l, most: most, groups: map[netip.Prefix]*crowd{},
		changed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

type crowdedListener struct {
	net.Listener
	most    int
	changed chan struct{} // a connection ended or became idle
	once    sync.Once
	closed  chan struct{}

	mu     sync.Mutex
	open   int
	groups map[netip.Prefix]*crowd
	idled  uint64 // number of the last connection that became idle
}

// crowd are the connections of an address: of a /64 of IPv6, since a client has all of it.
type crowd struct {
	open int
	idle list.List // of *crowdedConn, the one that is idle for the longest time first
}

// Accept waits for a connection and makes room for it.
func (l *crowdedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		l.mu.Lock()
		if l.open < l.most {
			in := l.enter(c)
			l.mu.Unlock()
			return in, nil
		}
		victim := l.victim()
		l.mu.Unlock()
		if victim != nil {
			victim.Close()
			continue
		}
		select {
		case <-l.changed:
		case <-l.closed:
			c.Close()
			return nil, net.ErrClosed
		}
	}
}

// enter counts a connection. The caller holds l.mu.
func (l *crowdedListener) enter(c net.Conn) *crowdedConn {
	in := &crowdedConn{passing: passing{c}, of: l}
	// A proxy's connection learns the address of its client when it is read.
	if p, is := c.(*proxyConn); is {
		c, in.proxied = p.Conn, true
	}
	l.open++
	l.join(in, groupOf(c.RemoteAddr()))
	l.rest(in)
	return in
}

// join puts a connection into the group of an address.
func (l *crowdedListener) join(c *crowdedConn, at netip.Prefix) {
	g := l.groups[at]
	if g == nil {
		g = &crowd{}
		l.groups[at] = g
	}
	g.open++
	c.at = at
}

// part takes a connection out of its group.
func (l *crowdedListener) part(c *crowdedConn) {
	l.work(c)
	g := l.groups[c.at]
	if g.open--; g.open == 0 {
		delete(l.groups, c.at)
	}
}

// rest marks a connection as idle.
func (l *crowdedListener) rest(c *crowdedConn) {
	if c.idle == nil && !c.left {
		l.idled++
		c.since, c.idle = l.idled, l.groups[c.at].idle.PushBack(c)
		c.resting.Store(true)
	}
}

// work marks a connection as working.
func (l *crowdedListener) work(c *crowdedConn) {
	if c.idle != nil {
		l.groups[c.at].idle.Remove(c.idle)
		c.idle = nil
		c.resting.Store(false)
	}
}

// victim is the connection that gives way, or nil. Of addresses with equally many connections it is the
// one with the oldest.
func (l *crowdedListener) victim() *crowdedConn {
	var found *crowdedConn
	most := 0
	for _, g := range l.groups {
		first := g.idle.Front()
		if first == nil || g.open < most {
			continue
		}
		if c := first.Value.(*crowdedConn); g.open > most || c.since < found.since {
			found, most = c, g.open
		}
	}
	return found
}

func (l *crowdedListener) poke() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Close also ends the wait of Accept.
func (l *crowdedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type crowdedConn struct {
	passing
	of      *crowdedListener
	proxied bool        // the address of its client is not known yet; of the goroutine that reads
	resting atomic.Bool // as idle, to be read without of.mu

	// Guarded by of.mu.
	at     netip.Prefix
	idle   *list.Element // nil: it works
	since  uint64        // order of becoming idle
	left   bool
	frames bool // HTTP/2: what comes may be no request
	apart  int  // streams of events; the connection is not counted while there are any
}

// Read implements net.Conn. The first bytes of a request end the idle time, before net/http says so.
func (c *crowdedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && (c.resting.Load() || c.proxied) {
		l := c.of
		l.mu.Lock()
		if !c.frames {
			l.work(c)
		}
		if c.proxied && !c.left {
			c.proxied = false
			l.part(c)
			l.join(c, groupOf(c.Conn.RemoteAddr())) // what came first has begun a request
		}
		l.mu.Unlock()
	}
	return n, err
}

// Close frees the place.
func (c *crowdedConn) Close() error {
	err := c.Conn.Close()
	l := c.of
	l.mu.Lock()
	if !c.left {
		l.part(c)
		c.left = true
		if c.apart == 0 {
			l.open--
		}
	}
	l.mu.Unlock()
	l.poke()
	return err
}

// ConnState is the hook of an [http.Server] with a [Crowded] listener: it tells which connections
// are idle.
func ConnState(conn net.Conn, state http.ConnState) {
	c := crowdedOf(conn)
	if c == nil {
		return
	}
	c.of.mu.Lock()
	switch state {
	case http.StateIdle:
		if over, is := conn.(*tls.Conn); is {
			c.frames = over.ConnectionState().NegotiatedProtocol == "h2"
		}
		c.of.rest(c)
	case http.StateActive, http.StateHijacked:
		c.of.work(c)
	}
	c.of.mu.Unlock()
	if state == http.StateIdle {
		c.of.poke()
	}
}

// crowdedOf finds the connection of a [Crowded] listener in those around it, or returns nil.
func crowdedOf(conn net.Conn) *crowdedConn {
	for {
		switch c := conn.(type) {
		case *crowdedConn:
			return c
		case *bulkConn:
			conn = c.Conn
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// groupOf returns the address of a client, the /64 of IPv6. Addresses of another kind are one group.
func groupOf(a net.Addr) netip.Prefix {
	tcp, is := a.(*net.TCPAddr)
	if !is {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // the number of bits is right
	return p
}
